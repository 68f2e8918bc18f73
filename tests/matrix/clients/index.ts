/** The clients of the matrix, one for each protocol. */
import type { Client, ProtocolName } from '../scenario.ts';
import { chatClient } from './chat.ts';
import { geminiClient } from './gemini.ts';
import { messagesClient } from './messages.ts';
import { responsesClient } from './responses.ts';

export const clients: Readonly<Record<ProtocolName, Client>> = {
  chat: chatClient,
  responses: responsesClient,
  messages: messagesClient,
  gemini: geminiClient,
};
