/** Finish reasons of chat servers and of the chat protocol. Pure. */
import type { StopReason } from '../../../common/canonical/reply.ts';

/** Official reasons, and the reasons that compatible servers send instead. */
const reasons: ReadonlyMap<string, StopReason> = new Map([
  ['stop', 'stop'],
  ['end_turn', 'stop'],
  ['eos', 'stop'],
  ['stop_sequence', 'stop-sequence'],
  ['tool_calls', 'tool-calls'],
  ['tool_use', 'tool-calls'],
  ['function_call', 'tool-calls'],
  ['length', 'length'],
  ['incomplete', 'length'],
  ['max_tokens', 'length'],
  ['max_output_tokens', 'length'],
  ['model_length', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['continuation', 'length'],
  ['abort', 'length'],
  ['insufficient_system_resource', 'length'],
  ['pause_turn', 'pause'],
  ['content_filter', 'refusal'],
  ['refusal', 'refusal'],
  ['sensitive', 'refusal'],
  ['safety', 'refusal'],
  ['recitation', 'refusal'],
  ['blocklist', 'refusal'],
  ['prohibited_content', 'refusal'],
  ['spii', 'refusal'],
  ['language', 'refusal'],
  ['image_safety', 'refusal'],
  ['image_prohibited_content', 'refusal'],
  ['image_recitation', 'refusal'],
  ['image_other', 'refusal'],
  ['no_image', 'refusal'],
]);

/** The server could not parse the model's call: the client must not run any of it. */
const malformed = new Set([
  'malformed_function_call',
  'unexpected_tool_call',
  'missing_thought_signature',
  'malformed_response',
  'too_many_tool_calls',
]);

/** The server failed, and says so instead of a reason. */
const failures: ReadonlySet<unknown> = new Set(['error', 'network_error', 'server_error', 'failed']);

export function isFailure(word: unknown): boolean {
  return failures.has(typeof word === 'string' ? word.toLowerCase() : word);
}

/** In any letter case, also after a prefix (`function_call_filter: MALFORMED_FUNCTION_CALL`). Unknown reasons mean a stop. */
export function stopReasonOf(word: string): StopReason | 'malformed' {
  const plain = word.slice(word.lastIndexOf(' ') + 1).toLowerCase();
  return malformed.has(plain) ? 'malformed' : (reasons.get(plain) ?? 'stop');
}

/** Whether a server's `stop_reason` is the matched stop sequence and not a reason. */
export function isStopText(word: unknown): word is string {
  return typeof word === 'string' && word !== '' && !reasons.has(word.toLowerCase());
}

const finishReasons: Readonly<Record<StopReason, string>> = {
  stop: 'stop',
  'stop-sequence': 'stop',
  pause: 'stop',
  'tool-calls': 'tool_calls',
  length: 'length',
  refusal: 'content_filter',
};

/** `isLegacy`: the client declared `functions`. */
export function finishReasonOf(reason: StopReason, isLegacy: boolean): string {
  return isLegacy && reason === 'tool-calls' ? 'function_call' : finishReasons[reason];
}
