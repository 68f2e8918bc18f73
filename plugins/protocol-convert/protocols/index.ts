/** The protocols that are spoken, in the order in which they are listed to people. */
import type { Protocol } from '../protocol.ts';
import { chatWithInput, responsesWithChat } from './crossings.ts';
import { gemini } from './gemini/index.ts';
import { messages } from './messages/index.ts';

export const protocols: readonly Protocol[] = [chatWithInput, responsesWithChat, messages, gemini];

/** undefined: no chat protocol. */
export function protocolNamed(name: string): Protocol | undefined {
  return protocols.find((protocol) => protocol.name === name);
}
