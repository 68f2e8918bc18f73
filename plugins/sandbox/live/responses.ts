/** Responses over WebSocket: each turn is a request of the protocol, and the connection keeps its last response. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Writable } from 'node:stream';
import type { WebSocket } from 'ws';
import { badRequest, Fault } from '../fault.ts';
import type { JsonObject } from '../json.ts';
import type { Call, Turn } from '../protocol.ts';
import { wireFault } from '../protocols/chat-faults.ts';
import { parse, requestIdOf } from '../request-body.ts';
import { answerCall } from '../serve.ts';
import { continuedFrom } from '../stored-responses.ts';
import type { Vendor } from '../vendor-state.ts';

export function serveResponses(vendor: Vendor, socket: WebSocket, request: IncomingMessage): void {
  const session = new ResponsesSession(vendor, socket, request);
  socket.on('error', () => {});
  socket.on('message', (data: Buffer, isBinary: boolean) => session.receive(data, isBinary));
}

const ofTransport = ['stream', 'stream_options', 'background'];

class ResponsesSession {
  readonly #vendor: Vendor;
  readonly #socket: WebSocket;
  readonly #call: Call;
  readonly #requestId: string | undefined;
  #answer: SocketAnswer | undefined;
  #running: Promise<void> = Promise.resolve();
  /** The last response, also with `store: false`. */
  #last: Turn | undefined;

  constructor(vendor: Vendor, socket: WebSocket, request: IncomingMessage) {
    this.#vendor = vendor;
    this.#socket = socket;
    this.#requestId = requestIdOf(request);
    const { headers } = request;
    const path = { pathModel: undefined, pathStream: false, query: new URLSearchParams() };
    this.#call = { protocol: 'responses', operation: 'answer', events: true, headers, ...path };
  }

  /** One response is made at a time: the next message may come once the last one of an answer was sent. */
  receive(data: Buffer, isBinary: boolean): void {
    if (isBinary || this.#answer?.hasEnded === false) {
      const message = isBinary ? 'Messages must be text.' : 'Another response is being made on this connection.';
      this.#refuse(badRequest(message));
      return;
    }
    const answer = new SocketAnswer(this.#socket);
    this.#answer = answer;
    this.#running = this.#running.then(() => this.#serve(data, answer)).catch((error) => this.#fail(error));
  }

  async #serve(data: Buffer, answer: SocketAnswer): Promise<void> {
    const { type, ...body } = parse(data);
    if (type !== 'response.create') throw badRequest(`Invalid value: '${String(type)}'.`, 'type');
    for (const name of ofTransport)
      if (Object.hasOwn(body, name)) throw badRequest(`Unknown parameter: '${name}'.`, name, 'unknown_parameter');
    const request = { ...this.#continued(body), stream: true };
    const id = this.#vendor.nextId();
    this.#last = await answerCall(
      this.#vendor,
      { call: this.#call, body: request, bytes: data.length, id, requestId: this.#requestId },
      answer as unknown as ServerResponse,
    );
  }

  /** A failed turn also drops the response that it continues. */
  #continued(body: JsonObject): JsonObject {
    const { previous_response_id: id } = body;
    const last = this.#last;
    this.#last = undefined;
    if (typeof id !== 'string') return body;
    const turn = id === `resp_${last?.id}` ? last : this.#vendor.responses.find(id);
    if (turn !== undefined) return continuedFrom(turn, body);
    const message = `Previous response with id '${id}' not found.`;
    throw badRequest(message, 'previous_response_id', 'previous_response_not_found');
  }

  #fail(error: unknown): void {
    const hasBegun = this.#answer?.headersSent === true;
    this.#answer = undefined;
    if (hasBegun) this.#socket.terminate();
    else this.#refuse(error instanceof Fault ? error : new Fault(500, 'The sandbox failed.'));
  }

  #refuse(fault: Fault): void {
    const headers = fault.retryAfter === undefined ? {} : { headers: { 'retry-after': String(fault.retryAfter) } };
    this.#socket.send(JSON.stringify({ type: 'error', status: fault.status, error: wireFault(fault), ...headers }));
  }
}

/** Instead of Node's ServerResponse: each server-sent event becomes a message of its data alone. */
class SocketAnswer extends Writable {
  headersSent = false;
  /** The last message was sent. */
  hasEnded = false;
  /** It has no socket of its own to wait for. */
  readonly socket = null;
  readonly #client: WebSocket;
  #text = '';

  constructor(client: WebSocket) {
    super();
    this.#client = client;
    const leave = () => this.destroy();
    client.once('close', leave);
    this.once('close', () => client.off('close', leave));
  }

  writeHead(): this {
    this.headersSent = true;
    return this;
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    const frames = (this.#text + chunk.toString()).split('\n\n');
    this.#text = frames.pop() ?? '';
    const last = frames.pop();
    for (const frame of frames) this.#send(frame);
    if (last === undefined) done();
    else this.#send(last, done);
  }

  #send(frame: string, done?: () => void): void {
    const data = /^data: (.*)$/m.exec(frame)?.[1] ?? frame;
    this.hasEnded ||= /^event: response\.(?:completed|incomplete|failed)$/m.test(frame);
    this.#client.send(data, () => done?.());
  }

  /** An answer that is not a stream of events is sent as one message. */
  override _final(done: () => void): void {
    if (this.#text !== '') this.#client.send(this.#text);
    this.hasEnded = true;
    done();
  }

  override _destroy(_error: unknown, done: () => void): void {
    if (!this.writableFinished) this.#client.terminate();
    done();
  }
}
