/** Clients of Responses over WebSocket, half of them at a model that is relayed over WebSocket, that go on through crashes, and remember every answer that they got whole. */
import { randomInt } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { WebSocket } from 'ws';
import type { Acknowledged } from './clients.ts';

interface Response {
  readonly id: string;
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number };
}

/** Clients that connect again whenever their WebSocket has closed, until they are stopped. */
export abstract class Reconnecting {
  cancelled = 0;
  readonly #address: string;
  readonly #keys: readonly string[];
  readonly #workers: Promise<void>[];
  #running = true;

  constructor(origin: string, path: string, keys: readonly string[], workers: number) {
    this.#address = `${origin.replace('http', 'ws')}${path}`;
    this.#keys = keys;
    this.#workers = Array.from({ length: workers }, (_, index) => this.#work(index));
  }

  /** Called with each new socket before it opens. */
  protected abstract talk(socket: WebSocket, index: number): void;

  protected get running(): boolean {
    return this.#running;
  }

  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#workers);
  }

  async #work(index: number): Promise<void> {
    // A subclass is complete in the next turn.
    await pause(0);
    while (this.#running) {
      const key = this.#keys[index % this.#keys.length]!;
      const socket = new WebSocket(this.#address, { headers: { authorization: `Bearer ${key}` } });
      socket.on('error', () => {});
      let isOpen = false;
      socket.on('open', () => {
        isOpen = true;
      });
      const ended = new Promise((resolve) => void socket.on('close', resolve));
      this.talk(socket, index);
      await ended;
      await pause(isOpen ? 20 : 100);
    }
  }

  /** Breaks the connection off within 60 ms. */
  protected leave(socket: WebSocket): void {
    const leave = () => {
      this.cancelled += 1;
      socket.terminate();
    };
    setTimeout(leave, randomInt(0, 60)).unref();
  }
}

export class SocketClients extends Reconnecting {
  readonly acknowledged: Acknowledged[] = [];

  constructor(origin: string, keys: readonly string[], workers: number) {
    super(origin, '/v1/responses', keys, workers);
  }

  /** One turn after the other, each going on from the last one, until the connection breaks. */
  protected talk(socket: WebSocket, index: number): void {
    const model = index % 2 === 0 ? 'm' : 'relayed';
    let turn = 0;
    const send = (previous: string | undefined) => {
      if (socket.readyState !== WebSocket.OPEN) return;
      if (!this.running) return void socket.close();
      turn += 1;
      const input = `turn ${turn} [[sandbox: tokens=${randomInt(5, 60)} chunk_delay=${randomInt(1, 20)}ms]]`;
      const goesOn = turn % 5 === 0 ? undefined : previous;
      socket.send(
        JSON.stringify({ type: 'response.create', model, store: false, input, previous_response_id: goesOn }),
      );
      if (randomInt(15) === 0) this.leave(socket);
    };
    socket.on('message', (data) => {
      const event = JSON.parse(String(data)) as { type: string; response: Response };
      if (event.type === 'error' || event.type === 'response.failed') return void setTimeout(send, 100, undefined);
      if (event.type !== 'response.completed' && event.type !== 'response.incomplete') return;
      const { id, usage } = event.response;
      this.acknowledged.push({
        // A relayed response has the vendor's id.
        requestId: model === 'relayed' ? id : id.replace(/^resp_/, ''),
        promptTokens: usage.input_tokens,
        completionTokens: usage.output_tokens,
      });
      send(id);
    });
    socket.on('open', () => send(undefined));
  }
}
