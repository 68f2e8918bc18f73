/** The checks of a transcription: its text, and those of its segments. */

import type { Answer } from '../../../core/contract/message.ts';
import { isObject, type JsonObject, listOf, tryParseBytes } from '../../../core/json/json.ts';
import { asBytes, isWhole, wholeBody } from '../../common/wire/answer-body.ts';
import type { GuardedCall } from '../guarded-call.ts';
import { type Change, changed, type Piece } from '../pieces.ts';

const mostBytes = 64 * 2 ** 20;

/** Operations with answers of this form. */
export const transcribing: ReadonlySet<string> = new Set(['transcriptions', 'translations']);

export async function checkTranscript(call: GuardedCall, answer: Answer): Promise<Answer> {
  if (answer.status >= 300) return answer;
  const body = isWhole(answer.body) ? asBytes(answer.body) : await wholeBody(answer.body, mostBytes);
  let made: Buffer = Buffer.from(body);
  for (const check of call.at('answer', 'text')) {
    const piece = pieceOf(made, (by) => {
      made = by;
    });
    call.mask(piece, await call.judge(check, 'answer', { texts: piece.texts }));
  }
  const { bodyBytes: _length, ...head } = answer;
  return { ...head, body: made.equals(body) ? body : made };
}

function pieceOf(body: Buffer, write: (body: Buffer) => void): Piece {
  const json = tryParseBytes(body);
  if (isObject(json) && typeof json['text'] === 'string') return jsonTexts(json, write);
  const text = body.toString('utf8');
  return {
    texts: [{ role: 'assistant', text }],
    write: (changes) => write(Buffer.from(changed(text, changes.get(0) ?? []))),
  };
}

/** Words are parts of the text with their times: where something of the text is changed they are left out. */
function jsonTexts(json: JsonObject, write: (body: Buffer) => void): Piece {
  const segments = listOf(json['segments']);
  const textIn = (one: unknown) => (isObject(one) && typeof one['text'] === 'string' ? one['text'] : '');
  const texts = [String(json['text']), ...segments.map(textIn)].map((text) => ({ role: 'assistant', text }) as const);
  return {
    texts,
    write(changes: ReadonlyMap<number, readonly Change[]>) {
      const at = (index: number) => changed(texts[index]!.text, changes.get(index) ?? []);
      const { words: _words, ...rest } = json;
      const made = segments.map((one, index) =>
        isObject(one) && 'text' in one ? { ...one, text: at(index + 1) } : one,
      );
      write(Buffer.from(JSON.stringify({ ...rest, text: at(0), ...(segments.length > 0 ? { segments: made } : {}) })));
    },
  };
}
