/** Recordings as answers to clients of other protocols: the plugin alone, without sockets. */

import type { Answer } from '../../core/contract/message.ts';
import { toGatewayError } from '../../core/contract/upstream-failures.ts';
import type { Answered } from '../helpers/oracles.ts';
import type { Family, Recording } from '../helpers/recordings.ts';
import { requestFor } from '../helpers/replay.ts';
import { cutAt, open, readBody, relay, Source } from '../plugins/protocol-convert/harness.ts';

export interface Recorded {
  readonly client: Family;
  /** The client wants a stream; the recording decides for the upstream. */
  readonly isStream: boolean;
  /** Where the upstream's bytes are cut. */
  readonly cuts?: readonly number[];
}

/** What the client gets. Throws what the gateway would word as an error. */
export async function answerTo(recording: Recording, { client, isStream, cuts = [] }: Recorded): Promise<Answered> {
  const { path, body } = send(client, isStream, recording);
  const streams = recording.isStream === isStream ? 'both' : recording.isStream ? 'only' : 'never';
  const { answer } = await relay(
    { path, body, target: { protocol: recording.family, traits: { streams } } },
    answerOf(recording, cuts),
  );
  return { body: await readBody(answer.body), contentType: answer.headers['content-type'] ?? '' };
}

/** The error that the client gets instead of this recorded one. */
export async function errorTo(
  recording: Recording,
  { client, isStream }: Recorded,
): Promise<{ status: number; body: string }> {
  const requested = { ...send(client, isStream, recording), target: { protocol: recording.family } };
  const { endpoint, exchange } = open(requested);
  const error = await relay(requested, answerOf({ ...recording, isStream: false }, [])).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error === undefined) throw new Error(`${recording.name} is no error`);
  const answer = endpoint.renderError!(toGatewayError(error), exchange);
  return { status: answer.status, body: (await readBody(answer.body)).toString() };
}

function answerOf(recording: Recording, cuts: readonly number[]): Answer {
  const { status, response, isStream, contentType } = recording;
  return {
    status,
    headers: { 'content-type': contentType ?? (isStream ? 'text/event-stream' : 'application/json') },
    body: isStream ? new Source(cutAt(response, cuts)) : response,
  };
}

/** A request of this protocol that wants to see everything. */
function send(client: Family, isStream: boolean, recording: Recording): { path: string; body: unknown } {
  // The same protocol is translated too where the forms differ; then the recorded request is the best one.
  if (client === recording.family && recording.isStream === isStream) return requestFor(recording);
  const model = 'model';
  const said = 'hi';
  switch (client) {
    case 'chat':
      return {
        path: '/v1/chat/completions',
        body: {
          model,
          messages: [{ role: 'user', content: said }],
          ...(isStream ? { stream: true, stream_options: { include_usage: true } } : {}),
        },
      };
    case 'responses':
      return {
        path: '/v1/responses',
        body: { model, input: said, store: false, stream: isStream, reasoning: { summary: 'auto' } },
      };
    case 'messages':
      return {
        path: '/v1/messages',
        body: {
          model,
          max_tokens: 4096,
          messages: [{ role: 'user', content: said }],
          thinking: { type: 'adaptive', display: 'summarized' },
          stream: isStream,
        },
      };
    case 'gemini':
      return {
        path: `/v1beta/models/${model}:${isStream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
        body: {
          contents: [{ role: 'user', parts: [{ text: said }] }],
          generationConfig: { thinkingConfig: { includeThoughts: true } },
        },
      };
  }
}
