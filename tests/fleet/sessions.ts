/** Clients of WebSockets beside the others: responses in turns, translated and relayed, and realtime sessions; connected again whenever they were closed. */
import { setTimeout as pause } from 'node:timers/promises';
import { SocketClients } from '../kill/sockets.ts';
import { VoiceClients } from '../kill/voices.ts';

/** No turn takes nearly as long. */
const longestMs = 60_000;

export class Sessions {
  readonly #turns: SocketClients;
  readonly #voices: VoiceClients;

  constructor(origin: string, keys: readonly string[]) {
    // One of each kind of model.
    this.#turns = new SocketClients(origin, keys, 2);
    this.#voices = new VoiceClients(origin, keys, 1);
  }

  /** Whether each was answered or closed. */
  stop(): Promise<boolean> {
    const stopped = Promise.all([this.#turns.stop(), this.#voices.stop()]).then(() => true);
    return Promise.race([stopped, pause(longestMs, false, { ref: false })]);
  }

  /** Tokens of each response that came whole, by the gateway's id of the call or the vendor's id of the answer. */
  get acknowledged(): ReadonlyMap<string, number> {
    const turns = this.#turns.acknowledged.map(
      ({ requestId, promptTokens, completionTokens }) => [requestId, promptTokens + completionTokens] as const,
    );
    const voices = [...this.#voices.acknowledged].map(
      ([id, { input_tokens: into, output_tokens: out }]) => [id, into + out] as const,
    );
    return new Map([...turns, ...voices]);
  }

  get cancelled(): number {
    return this.#turns.cancelled + this.#voices.cancelled;
  }
}
