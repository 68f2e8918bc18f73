/** Commands that plugins add to the command line. Types alone. */

/** A command of `npm run -s gateway -- NAME …`. Its result is printed as JSON with `--json`, by `print` otherwise. */
export interface Command {
  /** `keys create`; one to three words. */
  readonly name: string;
  readonly summary: string;
  /** Positional arguments in order, `<name>` or `[name]`. */
  readonly arguments?: readonly string[];
  /** commander flags to their description: `{'--credit <usd>': 'USD to start with'}`. */
  readonly options?: Readonly<Record<string, string>>;
  /** `values` has arguments by name and options by camel-cased name. A thrown GatewayError is printed as one sentence, exit 1. */
  run(values: Record<string, string | boolean | undefined>): Promise<CommandResult>;
}

export interface CommandResult {
  /** Printed with `--json`. bigint becomes a string. */
  json: unknown;
  /** Printed without. */
  text: string;
  exitCode?: number;
}
