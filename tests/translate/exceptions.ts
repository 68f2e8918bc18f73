/** Recorded answers that do not read the same elsewhere, each with the reason. */
import type { Family, Recording } from '../helpers/recordings.ts';

export type Member = 'text' | 'reasoning' | 'tools' | 'stop';

interface Exception {
  /** Recordings by name. */
  readonly of: RegExp;
  readonly clients: readonly Family[];
  /** Clients by name; absent: all. */
  readonly oracle?: RegExp;
  readonly differs: readonly Member[];
}

const everybody: readonly Family[] = ['chat', 'responses', 'messages', 'gemini'];

const exceptions: readonly Exception[] = [
  // Content that is a list of parts: the official client of the vendor's protocol makes "[object Object]" of it.
  { of: /^mistral-mistral-small-latest-thinking-/, clients: everybody, differs: ['text', 'reasoning'] },
  // A sound where there is no place for one is reported by its transcript.
  { of: /-audio-out-/, clients: ['responses', 'messages'], differs: ['text'] },
  // An image where there is no place for one is reported as text that shows it.
  { of: /-image-out-/, clients: ['messages'], differs: ['text'] },
  // Code that the vendor ran is reported as text.
  { of: /-code-execution-/, clients: everybody, differs: ['text'] },
  // One client mixes all choices of a stream into one text.
  { of: /-n-choices-/, clients: ['chat', 'gemini'], oracle: /^ai-sdk$/, differs: ['text', 'reasoning'] },
  // Raw text of a tool is an object of one member where tools take objects alone.
  { of: /-custom-tool-/, clients: ['messages', 'gemini'], differs: ['tools'] },
];

/** What of this recording this client cannot read as the vendor's own clients do. */
export function differencesOf({ name }: Recording, client: Family, oracle: string): ReadonlySet<Member> {
  const found = exceptions.filter(
    (one) => one.of.test(name) && one.clients.includes(client) && (one.oracle?.test(oracle) ?? true),
  );
  return new Set(found.flatMap(({ differs }) => differs));
}

/** The gateway makes an error of it, whatever the client's protocol. */
export function isUnreadable({ name }: Recording): boolean {
  // A call that the vendor itself calls malformed, or an internal error of the vendor's, and nothing else.
  return /^google-(?:gemini-2\.5-flash-finish-unexpected-tool-call|finish-other)-/.test(name);
}

/** The client knows no calls of that kind. */
export function isBeyond({ name }: Recording, client: Family, oracle: string): boolean {
  return client === 'chat' && oracle === 'ai-sdk' && name.includes('-custom-tool-');
}
