/** The supported protocols, in the order in which the console and the CLI list them. */
import type { Protocol } from '../../common/wire/protocols.ts';
import { chatWithInput, responsesWithChat } from './cross-protocol.ts';
import { gemini } from './gemini/index.ts';
import { messages } from './messages/index.ts';

export const protocols: readonly Protocol[] = [chatWithInput, responsesWithChat, messages, gemini];

/** The versions in front of these protocols' addresses, the commonest one first. */
export const versionPrefixes: readonly string[] = ['/v1', '/v1beta', '/v1alpha'];

/** undefined: none of these. */
export function protocolNamed(name: string): Protocol | undefined {
  return protocols.find((protocol) => protocol.name === name);
}
