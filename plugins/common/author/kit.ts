/** `model-gateway/kit`: tools for plugins: JSON, events and meters of protocols, replaced texts, SQL. */

/** Texts of SQL with their values, by which the service `database` is queried: drizzle's `sql`. */
export { sql } from 'drizzle-orm';
/** Tables and columns of PostgreSQL, as drizzle describes them. */
export * as pg from 'drizzle-orm/pg-core';
export { type JsonObject, listOf, objectOf, textOf, tryParse } from '../../../core/json/json.ts';
export { dropOthers } from '../canonical/dropped-parameters.ts';
export { ReplyEvents } from '../canonical/events.ts';
export { functionTools } from '../encoding/function-tools.ts';
export { pairedTurns, withoutEmpty } from '../encoding/history.ts';
export { rowsOf, tableOf } from '../kit/sql.ts';
export type { Reading } from '../wire/counts.ts';
export { FrameMeter } from '../wire/frame-meter.ts';
export { jsonLines } from '../wire/json-lines.ts';
export { replaceTexts } from '../wire/replace-texts.ts';
/** Parts of media adapters: answers and errors of vendors, refusals by the client's field, references, sizes. */
export * as media from './media.ts';
