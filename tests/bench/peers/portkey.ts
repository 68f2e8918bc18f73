/** Portkey's gateway: `npm install --global @portkey-ai/gateway` puts its start script into npm's global folder; `PORTKEY_START` names it. */
import type { Peer } from './peer.ts';

export const portkey: Peer = {
  ready: '/',
  headers: (upstream) => ({ 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `${upstream}/v1` }),
  start: ({ port }) => ['node', process.env['PORTKEY_START'] ?? 'gateway', '--headless', `--port=${port}`],
};
