/** The chat-completions protocol, put together. */
import type { Protocol } from '../../protocol.ts';
import { chatCodec } from './codec.ts';
import { renderError, streamError } from './errors.ts';
import { peekChat } from './peek.ts';
import { relayRequest } from './relay-request.ts';
import { ChatTap } from './tap.ts';

export const chat: Protocol = {
  name: 'chat',
  address: 'POST /v1/chat/completions',
  auth: { header: 'authorization', value: 'Bearer {key}' },
  passedHeaders: ['openai-beta'],
  defaultHeaders: {},
  endpoints: [
    {
      path: '/v1/chat/completions',
      operation: 'chat',
      open(body) {
        const call = peekChat(body);
        return { protocol: chat, call, json: body.json, prepare: (target) => relayRequest(body, call.stream, target) };
      },
    },
  ],
  createTap: (call, options) => new ChatTap(call, options),
  renderError,
  streamError,
  codec: chatCodec,
};
