/** The checks of a request: one after the other in the order of their policy, so that a later one reads what an earlier one has masked. */
import type { PromptText, PromptTexts } from '../common/wire/prompt-rules.ts';
import type { GuardedCall } from './guarded-call.ts';
import type { OpenCheck } from './open-checks.ts';
import { type Piece, piecesOf } from './pieces.ts';

/** Throws a refusal. */
export async function checkPrompt(call: GuardedCall, prompt: PromptTexts): Promise<void> {
  for (const { text } of prompt.texts) call.placeholders.avoid(text);
  for (const check of call.at('prompt', 'messages', 'tool_result')) {
    const pieces = piecesOf(prompt, (text) => isRead(check, text));
    // The call goes on; its answer waits for the verdict, so that an error is met there.
    if (call.mayRunBeside(check)) call.runBeside(judged(call, check, pieces, prompt.unread.length));
    else await judged(call, check, pieces, prompt.unread.length);
  }
}

/** Earlier turns that a request continues by an id: answers are kept as clients have read them, and vendors must not. */
export async function maskKept(call: GuardedCall, prompt: PromptTexts): Promise<void> {
  for (const { text } of prompt.texts) call.placeholders.avoid(text);
  for (const check of call.at('prompt', 'messages', 'tool_result'))
    if (check.settings.do === 'mask')
      await judged(
        call,
        check,
        piecesOf(prompt, (text) => isRead(check, text)),
        0,
      );
}

function isRead({ settings: { on } }: OpenCheck, { kind }: PromptText): boolean {
  if (on.includes('prompt')) return true;
  if (kind === 'result') return on.includes('tool_result');
  return kind !== 'description' && on.includes('messages');
}

async function judged(call: GuardedCall, check: OpenCheck, pieces: readonly Piece[], unread: number): Promise<void> {
  const owners: { readonly piece: Piece; readonly index: number }[] = [];
  for (const piece of pieces) for (const index of piece.texts.keys()) owners.push({ piece, index });
  const texts = pieces.flatMap((piece) => piece.texts);
  const places = await call.judge(check, 'prompt', { texts, unread });
  for (const [piece, own] of Map.groupBy(places, ({ text }) => owners[text]!.piece))
    call.mask(
      piece,
      own.map((place) => ({ ...place, text: owners[place.text]!.index })),
      true,
    );
}
