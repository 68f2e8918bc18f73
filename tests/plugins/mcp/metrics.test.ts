/** Tool calls in the metrics: how many, how long, how they ended, and no name that a client has made up. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unexplainedLabels } from '../../docs/metric-labels.ts';
import { metrics } from '../../docs/metrics.ts';
import { freePort } from '../../helpers/free-port.ts';
import { openWorld } from './world.ts';

test('Prometheus reads of each tool how often it was called and how its calls ended, and of no tool that a client invents', async () => {
  const port = await freePort();
  const world = await openWorld({
    servers: ', price: { call: 0.25 }',
    more: `telemetry: { listen: ${port} }\n`,
  });
  try {
    const { id, key } = await world.account('10');
    const connected = await world.client(key, 'modern');
    await connected.listTools();
    for (let count = 0; count < 3; count++) await connected.callTool({ name: 'new__echo' });
    await connected.callTool({ name: 'old__fails' });
    await assert.rejects(connected.callTool({ name: 'old__throws' }));
    await assert.rejects(connected.callTool({ name: 'new__invented_by_a_client' }));
    await world.charges(id, 3);
    const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    for (const line of [
      /^gateway_requests_total\{operation="tool-call",outcome="complete",status="200"\} 8$/m,
      /^gateway_upstream_attempts_total\{gen_ai_provider_name="new",model="echo",result="answered",status="200"\} 3$/m,
      /^gateway_upstream_attempts_total\{gen_ai_provider_name="old",model="fails",result="refused"\} 1$/m,
      /^gateway_upstream_attempts_total\{gen_ai_provider_name="old",model="throws",result="refused"\} 1$/m,
      /^gateway_request_duration_count\{.*gateway_model="new__echo",gateway_provider="new"\} 3$/m,
      /^gateway_request_duration_count\{.*gateway_model="old__fails",gateway_provider="old"\} 1$/m,
      /^gateway_charged_nano_usd_total\{.*"new__echo".*\} 750000000$/m,
    ])
      assert.match(page, line);
    assert.deepEqual(unexplainedLabels(page, metrics()), []);
    assert.doesNotMatch(page, /invented_by_a_client/);
    assert.doesNotMatch(page, /^(?:gen_ai_|gateway_tokens).*_count/m, 'no model made anything');
    for (const secret of [key, id, 'of-new', '127.0.0.1']) assert.ok(!page.includes(secret), secret);
    await connected.close();
  } finally {
    await world.stop();
  }
});
