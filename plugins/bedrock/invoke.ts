/** What models have in common that are called by InvokeModel: addresses, headers, and the metrics of a stream's last chunk. */
import { isObject, type JsonObject } from '../../core/json/json.ts';

export function invokePath(model: string, stream: boolean): string {
  return `/model/${encodeURIComponent(model)}/${stream ? 'invoke-with-response-stream' : 'invoke'}`;
}

export const invokeHeaders = {
  // For long-lived API keys; signed requests have the scheme of AWS.
  auth: { header: 'authorization', value: 'Bearer {key}' },
  passedHeaders: [],
  defaultHeaders: {},
  // They are about the body of the model, not about the stream around it.
  fixedHeaders: { accept: 'application/json', 'content-type': 'application/json' },
};

const metricsName = 'amazon-bedrock-invocationMetrics';

/** The vendor adds counts and latencies to the last chunk. */
export function withoutMetrics(json: JsonObject): { readonly rest: JsonObject; readonly metrics?: JsonObject } {
  const { [metricsName]: metrics, ...rest } = json;
  return isObject(metrics) ? { rest, metrics } : { rest };
}
