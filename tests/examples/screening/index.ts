/** A guardrail over HTTP: a service judges the texts of every request before it costs anything. */
import { definePlugin, duration, GatewayError, type Host, z } from 'model-gateway';
import { joinedTexts, prompts } from 'model-gateway/domain';

export default definePlugin({
  name: 'screening',
  config: z.strictObject({
    url: z.url().describe('Where texts are judged: gets {"operation", "texts"}, answers {"refused": "why"} or {}.'),
    allow_private: z.boolean().default(false).describe('The service may be in a private network or on this machine.'),
    within: duration().prefault('2s').describe('How long a verdict may take; then the request is refused.'),
  }),
  extends: [prompts],
  setup(host, settings) {
    host.extend(prompts, {
      name: 'screening',
      async prompt({ texts }, { operation }) {
        const given = { operation, texts: joinedTexts(texts) };
        const refused = await verdict(host, settings, given).catch((error: unknown) => {
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

interface Settings {
  readonly url: string;
  readonly allow_private: boolean;
  readonly within: number;
}

/** Why the texts are refused; undefined: they are not. */
async function verdict(host: Host, settings: Settings, given: object): Promise<string | undefined> {
  const answer = await host.fetch(settings.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(given),
    timeoutMs: settings.within,
    maxBytes: 10_000,
    allowPrivate: settings.allow_private,
  });
  if (!answer.ok) throw new Error(`the service answered ${answer.status}`);
  return z.object({ refused: z.string().optional() }).parse(await answer.json()).refused;
}
