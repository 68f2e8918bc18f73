/** The labels of each metric, as OpenTelemetry names them; a test compares them with the page of a gateway under way. */

const request = [
  'gen_ai.operation.name',
  'gen_ai.request.model',
  'gen_ai.provider.name',
  'gateway.protocol',
  'gateway.stream',
  'http.response.status_code',
  'error.type',
];
const vendorCall = ['gen_ai.operation.name', 'gen_ai.provider.name', 'gen_ai.request.model', 'error.type'];
const plain = [
  'gateway.protocol',
  'gateway.stream',
  'http.response.status_code',
  'error.type',
  'gateway.model',
  'gateway.provider',
];
const charged = ['gen_ai.request.model', 'gen_ai.provider.name'];

/** Without those of a metric: it has none. */
const labels: Readonly<Record<string, readonly string[]>> = {
  'gateway.batches.lines': ['result'],
  'gateway.certificates.left': ['provider', 'use'],
  'gateway.charged.nano_usd': charged,
  'gateway.guardrail.duration': ['check', 'stage', 'verdict'],
  'gateway.outbound.duration': ['plugin', 'outcome'],
  'gateway.own_cost.nano_usd': charged,
  'gateway.request.duration': plain,
  'gateway.requests': ['operation', 'outcome', 'status'],
  'gateway.tokens': [...plain, 'type'],
  'gateway.upstream.attempts': ['gen_ai.provider.name', 'model', 'result', 'hedge', 'status'],
  'gateway.upstream.circuit': ['gen_ai.provider.name', 'model'],
  'gateway.upstream.in_flight': ['gen_ai.provider.name'],
  'gateway.upstream.keys': ['gen_ai.provider.name', 'state'],
  'gateway.upstream.queue': ['gen_ai.provider.name'],
  'gateway.websocket.bytes': ['protocol', 'direction'],
  'gateway.websocket.closes': ['protocol', 'code'],
  'gateway.websocket.open': ['protocol'],
  'gateway.websocket.turns': ['protocol'],
  'gen_ai.client.embeddings.duration': vendorCall,
  'gen_ai.client.embeddings.operation.input_tokens': request,
  'gen_ai.client.inference.duration': vendorCall,
  'gen_ai.client.inference.operation.input_tokens': request,
  'gen_ai.client.inference.operation.output_tokens': request,
  'gen_ai.client.inference.time_to_first_chunk': vendorCall.slice(0, 3),
  'gen_ai.client.inference.usage.cache_read.input_tokens': request,
  'gen_ai.client.inference.usage.cache_write.input_tokens': request,
  'gen_ai.client.inference.usage.input_tokens': request,
  'gen_ai.client.inference.usage.output_tokens': request,
  'gen_ai.client.inference.usage.reasoning.output_tokens': request,
  'gen_ai.client.operation.duration': vendorCall,
  'gen_ai.client.token.usage': [...request, 'gen_ai.token.type'],
  'gen_ai.server.request.duration': request,
  'gen_ai.server.time_to_first_token': request,
  'process.cpu.time': ['cpu.mode'],
};

export const labelsOf = (metric: string): readonly string[] => labels[metric] ?? [];
export const labelled = Object.keys(labels);

const forPrometheus = (name: string) => name.replaceAll('.', '_');

/** Labels that lines of a page for Prometheus have and the table has not, and metrics that the table does not know. */
export function unexplainedLabels(page: string, metrics: readonly { name: string; prometheus: string }[]): string[] {
  const known = new Map(metrics.map(({ name, prometheus }) => [prometheus, labelsOf(name).map(forPrometheus)]));
  const wrong = page
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith('target_info'))
    .flatMap((line) => {
      const [, name, list = ''] = /^(\w+)(?:\{(.*)\})? /.exec(line)!;
      const of = known.get(name!) ?? known.get(name!.replace(/_(?:bucket|sum|count)$/, ''));
      if (of === undefined) return [name!];
      const shown = Array.from(list.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g), ([, label]) => label!);
      return shown.filter((label) => label !== 'le' && !of.includes(label)).map((label) => `${name}: ${label}`);
    });
  return [...new Set(wrong)];
}
