/** A guardrail over HTTP: a service judges the texts of every request before it costs anything. */
import { definePlugin, duration, GatewayError, z } from 'model-gateway';
import { joinedTexts, prompts } from 'model-gateway/domain';

export default definePlugin({
  name: 'screening',
  config: z.strictObject({
    url: z.url().describe('Where texts are judged: gets {"operation", "texts"}, answers {"refused": "why"} or {}.'),
    within: duration().prefault('2s').describe('How long a verdict may take; then the request is refused.'),
  }),
  extends: [prompts],
  setup(host, { url, within }) {
    host.extend(prompts, {
      name: 'screening',
      async prompt({ texts }, { operation }) {
        const refused = await verdict(url, within, { operation, texts: joinedTexts(texts) }).catch((error: unknown) => {
          host.log.warn({ error }, 'texts could not be screened');
          throw new GatewayError('overloaded', 'The request could not be screened.', { retryAfterMs: 1_000 });
        });
        if (refused !== undefined)
          throw new GatewayError('forbidden', refused, { code: 'screened', shouldRetry: false });
      },
    });
    return {};
  },
});

/** Why the texts are refused; undefined: they are not. */
async function verdict(url: string, within: number, given: object): Promise<string | undefined> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(given),
    signal: AbortSignal.timeout(within),
  });
  if (!answer.ok) throw new Error(`the service answered ${answer.status}`);
  return z.object({ refused: z.string().optional() }).parse(await answer.json()).refused;
}
