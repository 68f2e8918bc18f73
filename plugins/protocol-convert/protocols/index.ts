/** The protocols that are spoken, in the order in which they are listed to people. */
import type { Protocol } from '../protocol.ts';
import { chat } from './chat/index.ts';
import { gemini } from './gemini/index.ts';
import { messages } from './messages/index.ts';
import { responses } from './responses/index.ts';

export const protocols: readonly Protocol[] = [chat, responses, messages, gemini];
