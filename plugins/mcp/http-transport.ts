/** The library's way to a server by HTTP; a request fails as soon as the stream of its answer has ended without the answer. */
import {
  type FetchLike,
  isJSONRPCErrorResponse,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  SdkError,
  SdkErrorCode,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';

type Sent = Parameters<StreamableHTTPClientTransport['send']>;
type Id = string | number;

/** Nothing is asked for by GET, so the rest of an answer is not either. */
const never = { maxRetries: 0, initialReconnectionDelay: 0, maxReconnectionDelay: 0, reconnectionDelayGrowFactor: 1 };

/** The library alone would wait until the time of the request is over. */
export class HttpTransport extends StreamableHTTPClientTransport {
  readonly #waiting = new Map<Id, PromiseWithResolvers<void>>();

  constructor(address: URL, fetch: FetchLike) {
    super(address, { fetch, reconnectionOptions: never });
    // The library calls it before its own, so an answer is known before its stream ends.
    this.onmessage = (message) => {
      if (isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message)) this.#over(message.id);
    };
  }

  /** For a request it resolves with the answer, or when the request is given up. */
  override send(...[message, options]: Sent): Promise<void> {
    if (Array.isArray(message) || !isJSONRPCRequest(message)) {
      if (!Array.isArray(message)) this.#over(cancelledBy(message));
      return super.send(message, options);
    }
    const { id } = message;
    const answer = Promise.withResolvers<void>();
    this.#waiting.set(id, answer);
    options?.requestSignal?.addEventListener('abort', () => this.#over(id), { once: true });
    const onRequestStreamEnd = () =>
      answer.reject(new SdkError(SdkErrorCode.ConnectionClosed, 'The stream of an answer ended before it.'));
    super.send(message, { ...options, onRequestStreamEnd }).catch(answer.reject);
    return answer.promise.finally(() => this.#waiting.delete(id));
  }

  #over(id: Id | undefined): void {
    if (id !== undefined) this.#waiting.get(id)?.resolve();
  }
}

function cancelledBy(message: JSONRPCMessage): Id | undefined {
  if (!('method' in message) || message.method !== 'notifications/cancelled') return undefined;
  return message.params?.['requestId'] as Id | undefined;
}
