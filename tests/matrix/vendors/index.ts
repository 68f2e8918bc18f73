/** The scripted vendors of the matrix, one for each protocol. */
import type { ProtocolName, VendorWords } from '../scenario.ts';
import { chatVendor } from './chat.ts';
import { geminiVendor } from './gemini.ts';
import { messagesVendor } from './messages.ts';
import { responsesVendor } from './responses.ts';

export const vendors: Readonly<Record<ProtocolName, VendorWords>> = {
  chat: chatVendor,
  responses: responsesVendor,
  messages: messagesVendor,
  gemini: geminiVendor,
};
