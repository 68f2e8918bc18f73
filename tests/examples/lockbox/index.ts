/** Lockbox: secrets of a made-up service over HTTP, as `${lockbox:path#member}` in any section of a gateway file. */
import { definePlugin, duration, secretSources, z } from 'model-gateway';

export default definePlugin({
  name: 'lockbox',
  config: z.strictObject({
    address: z.url().describe('Where the service listens.'),
    token: z.string().min(1).describe('What the gateway signs in with: a variable or a file, as all in this section.'),
    every: duration().prefault('1m').describe('How often the service is asked whether secrets have changed.'),
  }),
  extends: [secretSources],
  setup(host, { address, token, every }) {
    const send = (path: string, signal?: AbortSignal) =>
      fetch(new URL(path, address), { headers: { authorization: `Bearer ${token}` }, ...(signal && { signal }) });
    let version: string | null = null;
    let changed = () => {};
    host.every(every, 'ask whether secrets have changed', async () => {
      const latest = (await send('/version')).headers.get('etag');
      if (version !== null && latest !== version) changed();
      version = latest;
    });
    host.extend(secretSources, {
      name: 'lockbox',
      async read(reference, signal) {
        const [path, member = 'value'] = reference.split('#');
        const answer = await send(`/secrets/${path}`, signal);
        if (answer.status === 404) return undefined;
        if (!answer.ok) throw new Error(`the lockbox answers ${answer.status}`);
        // The oldest version that is in use: a change before the first question is found by it.
        version ??= answer.headers.get('etag');
        return ((await answer.json()) as Record<string, string>)[member];
      },
      watch(listener) {
        changed = listener;
        return () => {
          changed = () => {};
        };
      },
    });
    return {};
  },
});
