/** `model-gateway/kit`: tools for plugins: JSON, encoding and decoding of protocols, usage meters, replaced texts. */

/** Texts of SQL with their values, by which the service `database` is queried: drizzle's `sql`. */
export { sql } from 'drizzle-orm';
/** Tables and columns of PostgreSQL, as drizzle describes them. */
export * as pg from 'drizzle-orm/pg-core';
export { isObject, type JsonObject, listOf, objectOf, textOf, tryParse } from '../../../core/json/json.ts';
export { dropMarks, dropOthers } from '../canonical/dropped-parameters.ts';
export { ReplyEvents } from '../canonical/events.ts';
export { functionTools } from '../encoding/function-tools.ts';
export { messagesWith, pairedTurns, withoutEmpty } from '../encoding/history.ts';
export { isMedia, plainText } from '../encoding/media.ts';
export { readableTurns } from '../encoding/readable-media.ts';
export { effortOf, nearestEffort } from '../encoding/reasoning.ts';
export { legalCallId } from '../encoding/tool-ids.ts';
export { ToolNamer } from '../encoding/tool-names.ts';
export { rowsOf, tableOf } from '../kit/sql.ts';
export type { Reading } from '../wire/counts.ts';
export { FrameMeter, readSides } from '../wire/frame-meter.ts';
export { jsonLines } from '../wire/json-lines.ts';
export { isBlankBut, openingWhere } from '../wire/opening-frames.ts';
export { replaceTexts } from '../wire/replace-texts.ts';
export { textBytesIn } from '../wire/text-meter.ts';
/** Parts of media adapters: answers and errors of vendors, refusals by the client's field, references, sizes. */
export * as media from './media.ts';
