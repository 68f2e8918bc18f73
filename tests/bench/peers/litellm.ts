/** LiteLLM's proxy: `pip install 'litellm[proxy]'` puts the command `litellm` on the path. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Peer } from './peer.ts';

export const litellm: Peer = {
  ready: '/health/liveliness',
  start({ directory, port, upstream, model }) {
    const file = join(directory, 'config.json');
    const target = { model: `openai/${model}`, api_base: `${upstream}/v1`, api_key: 'bench' };
    const settings = { dangerously_permit_weak_or_unset_master_key: true };
    const models = [{ model_name: model, litellm_params: target }];
    writeFileSync(file, JSON.stringify({ model_list: models, general_settings: settings }));
    return ['litellm', '--config', file, '--host', '127.0.0.1', '--port', String(port)];
  },
};
