/** Serves several clients from one backend: each group of messages runs whole, and a transaction keeps the others waiting. */
import { createServer, type Server } from 'node:net';
import { type Group, Session } from './session.ts';
import { AnswerScanner } from './wire.ts';

const maxClients = 500;

/** The one backend. Takes whole frontend messages; `onAnswer` gets bytes that are valid during the call alone. */
export interface Backend {
  run(messages: Uint8Array, onAnswer: (bytes: Uint8Array) => void): Promise<void>;
}

export interface ServerOptions {
  readonly backend: Backend;
  /** Parameters sent to each client when it connects, such as `server_version`. */
  readonly settings: Readonly<Record<string, string>>;
  /** Longest silence of a client inside a transaction, or between a Flush and its Sync, while the others wait. */
  readonly holdTimeoutMs: number;
  /** The backend did what it never may; nothing can be run any more. */
  readonly onBroken: (error: Error) => void;
}

export class EmbeddedServer {
  readonly #options: ServerOptions;
  readonly #server: Server;
  readonly #sessions = new Set<Session>();
  /** Clients with something to run, in turn. */
  readonly #waiting = new Set<Session>();
  readonly #jobs: (() => Promise<void>)[] = [];
  /** Has a transaction or an unfinished group; only its messages run. */
  #holder: Session | undefined;
  #holdTimer: NodeJS.Timeout | undefined;
  #running = false;
  #ended = false;

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#server = createServer((socket) => {
      const session = new Session(socket, {
        settings: options.settings,
        onWork: () => this.#queue(session),
        onLeave: () => {
          this.#sessions.delete(session);
          this.#queue(session);
        },
      });
      this.#sessions.add(session);
      if (this.#sessions.size > maxClients) session.end('53300', 'there are too many connections');
    });
  }

  /** Resolves when clients can connect to the socket at `path`. */
  listen(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(path, resolve);
    });
  }

  /** Runs work on the backend when no client is inside a transaction; the clients wait for its end. */
  whenFree<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#jobs.push(() => work().then(resolve, reject));
      this.#proceed();
    });
  }

  /** Takes no further client and ends the connections; resolves when running statements have ended. */
  async close(): Promise<void> {
    this.#server.close();
    for (const session of this.#sessions) session.end('57P01', 'the database is shutting down');
    await this.whenFree(async () => {
      this.#ended = true; // What a client has sent meanwhile finds no backend.
    });
  }

  #queue(session: Session): void {
    if (session.ready) this.#waiting.add(session);
    this.#proceed();
  }

  #proceed(): void {
    if (this.#running || this.#ended) return;
    const work = this.#next();
    if (work === undefined) return;
    clearTimeout(this.#holdTimer);
    this.#running = true;
    work()
      .catch((error: Error) => this.#fail(error))
      // By way of the event loop, so that bytes of other clients are read between two groups.
      .finally(() =>
        setImmediate(() => {
          this.#running = false;
          this.#proceed();
        }),
      );
  }

  #next(): (() => Promise<void>) | undefined {
    if (this.#holder === undefined) {
      const job = this.#jobs.shift();
      if (job !== undefined) return job;
    }
    const session = this.#holder ?? this.#waiting.values().next().value;
    if (session === undefined || !this.#waiting.delete(session)) return undefined;
    const group = session.take();
    return group === undefined ? async () => this.#passOn(session) : () => this.#run(session, group);
  }

  async #run(session: Session, group: Group): Promise<void> {
    const scanner = new AnswerScanner();
    await this.#options.backend.run(group.bytes, (bytes) => {
      scanner.push(bytes);
      // Beyond these points the backend would look for messages that cannot come, and repeat itself for ever.
      if (scanner.copyIn || scanner.errors > 2) this.#fail(new Error('the backend lost its place'));
      session.write(Buffer.from(bytes));
    });
    for (const other of this.#sessions)
      if (other.listens && other !== session)
        for (const notification of scanner.notifications) other.write(notification);
    if (group.synced && scanner.status === undefined) throw new Error('the backend gave no answer');
    session.open = scanner.status === undefined;
    if (scanner.status !== undefined) session.status = scanner.status;
    this.#passOn(session);
  }

  #passOn(session: Session): void {
    this.#holder = session.holds ? session : undefined;
    if (session.ready) this.#waiting.add(session);
    if (!session.holds) return;
    this.#holdTimer = setTimeout(
      () => session.end('25P03', 'the connection was ended: it kept a transaction open without a word'),
      this.#options.holdTimeoutMs,
    );
  }

  #fail(error: Error): void {
    this.#ended = true;
    this.#options.onBroken(error);
  }
}
