/** Pieces of chat answers that streams and whole answers share. Pure. */
import type { Citation } from '../../canon.ts';
import type { ReplyContext } from '../../codec.ts';
import type { JsonObject } from '../../json.ts';

const idPrefix = 'chatcmpl-';

/** The upstream's own id where it is one of this protocol, else one of the gateway's. */
export function replyId(id: string | undefined, context: ReplyContext): string {
  return id?.startsWith(idPrefix) ? id : idPrefix + context.exchangeId;
}

export function audioId(context: ReplyContext): string {
  return `audio_${context.exchangeId}`;
}

/** A source by address; others have no place in this protocol. `blockStart`, `textEnd`: the cited block's place in the text. */
export function annotationOf(citation: Citation, blockStart: number, textEnd: number): JsonObject | undefined {
  const { url, title, start, end } = citation;
  if (url === undefined) return undefined;
  return {
    type: 'url_citation',
    url_citation: {
      start_index: start === undefined ? blockStart : blockStart + start,
      end_index: end === undefined ? textEnd : blockStart + end,
      title: title ?? '',
      url,
    },
  };
}

/** An entry of `reasoning_details`: the signed words again, as clients may trim or join what they were shown. */
export function sealedDetail(
  { text, redacted }: { readonly text: string; readonly redacted: boolean },
  sealed: string,
  index: number,
): JsonObject {
  return redacted
    ? { type: 'reasoning.encrypted', index, data: sealed }
    : { type: 'reasoning.text', index, text, signature: sealed };
}
