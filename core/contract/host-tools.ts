/** The clock, randomness and log that the core injects into every plugin. */

/** Injected time in milliseconds. Simulation needs that no other code reads Date or performance. */
export interface Clock {
  /** Wall clock, whole milliseconds since 1970; may step. */
  now(): number;
  /** Never steps back; only differences have a meaning. */
  monotonic(): number;
}

export interface Random {
  bytes(count: number): Buffer;
  /** Uniform in [0, 1). */
  fraction(): number;
}

/**
 * pino's shape: fields first, then a message. A message with a transient `error` is logged at once, then once a minute while it
 * repeats. One with an error that belongs to an outage (`outage.ts`) is not logged: the outage has lines of its own.
 */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /**
   * A line at level info with fields that are encoded already (a JSON object with members), for lines of every request.
   * Nothing is masked in it: the caller masks texts from outside field by field.
   */
  record(message: string, json: string): void;
}

/** The log of one request: each line has the request's id, and what plugins add to it (`PluginInstance.logFields`). */
export interface RequestLog extends Omit<Log, 'record'> {
  /** Fields of its lines, for lines about work that continues after the exchange. */
  fields(): Readonly<Record<string, string>>;
}

/** Regular work. Returns no promise, or one of `'idle'`, when there was nothing to do. */
// biome-ignore lint/suspicious/noConfusingVoidType: most works say nothing of their rounds.
export type RegularWork = () => void | Promise<unknown>;
