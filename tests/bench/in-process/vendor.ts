/** A vendor without a socket: takes the place of undici's dispatch and answers each request in the next turns of the event loop. */
import { Client, type Dispatcher, Pool } from 'undici';

export interface Script {
  readonly headers: Readonly<Record<string, string>>;
  /** One for each turn of the event loop. */
  readonly chunks: readonly Buffer[];
}

/** What undici gives to a handler; nothing here is ever paused. */
class Controller {
  readonly paused = false;
  readonly aborted = false;
  readonly reason = null;
  readonly rawHeaders = [];
  readonly rawTrailers = [];

  pause(): void {}

  resume(): void {}

  abort(reason: Error): void {
    console.error('a request in process was aborted:', reason);
    process.exit(1);
  }
}

/** From now on every request of this process is answered by the script, over connections that stay open. */
export function answerBy({ headers, chunks }: Script): void {
  const next = (
    handler: Dispatcher.DispatchHandler,
    controller: Controller,
    client: Client | undefined,
    index: number,
  ) => {
    if (index === 0) {
      handler.onRequestStart!(controller, {});
      handler.onResponseStart!(controller, 200, { ...headers }, 'OK');
    }
    handler.onResponseData!(controller, chunks[index]!);
    if (index + 1 < chunks.length) setImmediate(next, handler, controller, client, index + 1);
    else {
      handler.onResponseEnd!(controller, {});
      client?.emit('drain', vendorUrl);
    }
  };
  Pool.prototype.dispatch = (_options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) =>
    setImmediate(next, handler, new Controller(), undefined, 0) !== undefined;
  Client.prototype.dispatch = function dispatch(
    { body }: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
  ) {
    const answer = () => setImmediate(next, handler, new Controller(), this, 0);
    if (body === null || body instanceof Uint8Array || typeof body === 'string') answer();
    else {
      this.emit('connect', vendorUrl, []);
      void consume(body as unknown as AsyncIterable<Uint8Array>).then(answer);
    }
    return true;
  };
}

async function consume(body: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _part of body);
}

const vendorUrl = new URL('http://vendor.invalid');
