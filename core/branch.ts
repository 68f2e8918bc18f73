/** The vocabulary of attempts of one exchange that run at the same time. Types alone. */
import type { Exchange } from './contract.ts';
import type { GatewayError } from './errors.ts';

/**
 * An exchange as one of its attempts sees it. It begins with the exchange's facts; what is stated on it stays its own until
 * the exchange goes on as this branch. What is deferred on it is deferred by the exchange, whose abort it hears.
 */
export interface Branch extends Exchange {
  /** Its request was handed to a socket. */
  readonly hasSent: boolean;
  /** Status of the head that its upstream has sent; 0: none has come. */
  readonly headStatus: number;
  /** It is over: its upstream alone is told to stop, and by whose bounds a client may leave is up to the others. */
  stop(reason: GatewayError): void;
  /** The exchange goes on as this branch: from here on its facts are the exchange's. For one of the branches that run. */
  join(): void;
}
