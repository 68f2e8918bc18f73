/** A server that is a program on this machine: started by the first request, again after its end, and without the gateway's environment. */
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import type { Host } from '../../core/contract/contract.ts';
import type { ServerConfig } from './config.ts';

/** It is started once in so long at most, however often it ends. */
const pauseMs = 1_000;
const longestLine = 500;

export class Program {
  readonly #host: Host;
  readonly #server: string;
  readonly #settings: ServerConfig;
  #notBefore = Number.NEGATIVE_INFINITY;

  constructor(host: Host, server: string, settings: ServerConfig) {
    this.#host = host;
    this.#server = server;
    this.#settings = settings;
  }

  /** Throws while it has just been started: what ends at once is not started again and again. */
  start(): StdioClientTransport {
    const now = this.#host.clock.monotonic();
    if (now < this.#notBefore) throw new Error('the program has just ended');
    this.#notBefore = now + pauseMs;
    const { command = [], environment, answer } = this.#settings;
    const [file = '', ...parts] = command;
    // The library gives it PATH, HOME and the like of the gateway's own variables, and no others.
    const transport = new StdioClientTransport({
      ...{ command: file, args: parts, env: environment, maxBufferSize: answer, stderr: 'pipe' },
    });
    transport.stderr?.on('data', (chunk: Buffer) => {
      const text = chunk.toString('utf8').slice(0, longestLine);
      this.#host.log.debug({ server: this.#server, text }, 'a program with tools wrote to its error output');
    });
    return transport;
  }
}
