/** Compares translated streams with relayed streams of either protocol, and with the bare forwarder. */
import { compare, report, type Subject } from './measure.ts';
import type { Started } from './processes.ts';
import { names, type ProtocolName, wordsOf } from './words.ts';

/** From the client's protocol to the upstream's. */
const pairs: readonly (readonly [client: ProtocolName, upstream: ProtocolName])[] = [
  ['chat', 'messages'],
  ['messages', 'chat'],
  ['responses', 'chat'],
  ['chat', 'responses'],
  ['messages', 'responses'],
  ['gemini', 'responses'],
  ['chat', 'gemini'],
];

/** The vendor sends as fast as possible. Subjects: each translated pair; for each protocol, its relay and the bare forwarder. */
export async function translatedStreams(
  gateway: Started,
  bare: Started,
  chunks: number,
  prompt: string,
): Promise<void> {
  const subjects: Record<string, Subject> = {};
  for (const upstream of names) {
    subjects[bareName(upstream)] = { started: bare, ...wordsOf(upstream).request(`chunks=${chunks} ${prompt}`) };
    const clients = pairs.filter((pair) => pair[1] === upstream).map(([client]) => client);
    for (const client of [upstream, ...clients]) {
      const requested = wordsOf(client, upstream).request(`chunks=${chunks} ${prompt}`);
      subjects[nameOf(client, upstream)] = { started: gateway, ...requested };
    }
  }
  const title = `Streams of ${chunks} chunks, 16 at a time, translated (client from upstream) beside relayed ones of either protocol`;
  report(title, await compare(subjects, chunks, 16), referencesOf);
}

function nameOf(client: ProtocolName, upstream: ProtocolName): string {
  return client === upstream ? `${upstream} relayed` : `${client} from ${upstream}`;
}

const bareName = (protocol: ProtocolName) => `${protocol} forwarded`;

function referencesOf(name: string): readonly string[] {
  const [client, upstream] = name.split(' from ') as [ProtocolName, ProtocolName?];
  if (upstream !== undefined) return [bareName(client), nameOf(upstream, upstream), nameOf(client, client)];
  return name.endsWith(' relayed') ? [bareName(name.split(' ')[0] as ProtocolName)] : [];
}
