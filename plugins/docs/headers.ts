/** The headers between clients and the gateway that are the gateway's own, or mean something to it. */

export interface HeaderText {
  readonly name: string;
  readonly from: 'client' | 'gateway';
  readonly text: string;
}

const client = (name: string, text: string): HeaderText => ({ name, from: 'client', text });
const gateway = (name: string, text: string): HeaderText => ({ name, from: 'gateway', text });

export const headerTexts: readonly HeaderText[] = [
  client('authorization', '`Bearer KEY`: the key.'),
  client('x-api-key', 'The key, as clients of messages send it.'),
  client('x-goog-api-key', 'The key, as clients of generate-content send it.'),
  client('idempotency-key', 'One answer and one charge for all repetitions under this text.'),
  client('prefer', '`wait`: an order of images is answered with the images; `respond-async`: with its task.'),
  client('x-gateway-tags', '`NAME=VALUE, …`: what the call is for, where the key takes these tags.'),
  client('x-gateway-run', '`budget=2.00; turns=4; calls=10`: bounds of a run with tools of the gateway.'),
  client('x-gateway-tools', '`crm/*, github/search_*`: the only tools of the request to `/mcp`.'),
  client(
    'x-session-id',
    'Keeps the requests of one session at one target and key; further names: `route.affinity.headers`.',
  ),
  client('cache-control', '`no-store`, `no-cache` or `max-age=N`, where the gateway has a cache of answers.'),
  client('traceparent', 'The trace that the request belongs to.'),
  gateway(
    'x-request-id',
    'The id of the request, in the log and the console. Clients of messages get it as `request-id`, too.',
  ),
  gateway('retry-after', 'Seconds after which a repetition may succeed.'),
  gateway('x-should-retry', '`false`: a repetition cannot help or would be charged again; official SDKs obey it.'),
  gateway('x-gateway-dropped', 'Request fields that the target does not take, and that were left out.'),
  gateway(
    'x-cache',
    '`hit`, `similar` or `miss`, of calls that the cache of answers is for; `age` has the seconds since the answer was made.',
  ),
  gateway('x-gateway-guardrails', 'What the checks of the operator have said: `pii=masked(2), words=passed`.'),
  gateway('x-gateway-model', 'The model that served the call, where it is another one than the requested.'),
  gateway('x-gateway-estimated', '`true`: the count of tokens is the gateway’s own estimate.'),
  gateway('x-gateway-task', 'The task of an order that is answered with its result.'),
  gateway('x-gateway-poll', 'The address of the task of an order.'),
  gateway('x-original-request-id', 'The first request under the same `Idempotency-Key`, whose answer this is.'),
  gateway(
    'x-ratelimit-limit-requests',
    'The scarcest limit of requests; `…-tokens` of tokens; clients of messages get `anthropic-ratelimit-…`, those of generate-content none.',
  ),
  gateway('x-ratelimit-remaining-requests', 'What is left of it.'),
  gateway('x-ratelimit-reset-requests', 'When it is whole again.'),
];
