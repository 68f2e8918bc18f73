/** Members of chat answers that streams and whole answers share. Pure. */

import type { JsonObject } from '../../../../core/json/json.ts';
import type { ReplyContext } from '../../../common/canonical/codec.ts';
import type { Citation } from '../../../common/canonical/prompt.ts';
import { citedUrl } from '../../encoding/citations.ts';

const idPrefix = 'chatcmpl-';

/** The upstream's id if it has this protocol's form, otherwise one from the gateway. */
export function replyId(id: string | undefined, context: ReplyContext): string {
  return id !== undefined && (context.continues || id.startsWith(idPrefix)) ? id : idPrefix + context.exchangeId;
}

export function audioId(context: ReplyContext): string {
  return `audio_${context.exchangeId}`;
}

/** The protocol's one kind of citation, of an address. `blockStart`, `textEnd`: the cited block's range in the text. */
export function annotationOf(citation: Citation, blockStart: number, textEnd: number): JsonObject | undefined {
  const { title, file, start, end } = citation;
  const url = citedUrl(citation);
  if (url === undefined) return undefined;
  return {
    type: 'url_citation',
    url_citation: {
      start_index: start === undefined ? blockStart : blockStart + start,
      end_index: end === undefined ? textEnd : blockStart + end,
      title: title ?? file?.id ?? '',
      url,
    },
  };
}

/** What precedes a thought in the message. The message's members do not show this, as each holds one kind of part. */
export interface Position {
  /** Blocks of any kind, including thoughts. */
  blocks: number;
  /** UTF-16 length of the text. */
  text: number;
  images: number;
  calls: number;
}

const placeForm = /^at_(\d{1,9})_(\d{1,4})_(\d{1,4})$/;

/** A position encoded as the id of an entry; undefined at the very front, which needs no position. */
function idOfPosition({ text, images, calls }: Position): string | undefined {
  return text + images + calls === 0 ? undefined : `at_${text}_${images}_${calls}`;
}

/** The position that an id encodes. */
export function positionOfId(id: string | undefined): Omit<Position, 'blocks'> | undefined {
  const match = placeForm.exec(id ?? '');
  return match === null ? undefined : { text: Number(match[1]), images: Number(match[2]), calls: Number(match[3]) };
}

/**
 * An entry of `reasoning_details`: the signed text again, as clients may trim or join the visible text, and its position, as
 * vendors verify signatures by position.
 */
export function sealedDetail(
  { text, redacted }: { readonly text: string; readonly redacted: boolean },
  sealed: string,
  position: Position,
): JsonObject {
  const index = position.blocks;
  const id = idOfPosition(position);
  const entryMembers = id === undefined ? { index } : { index, id };
  return redacted
    ? { type: 'reasoning.encrypted', ...entryMembers, data: sealed }
    : { type: 'reasoning.text', ...entryMembers, text, signature: sealed };
}
