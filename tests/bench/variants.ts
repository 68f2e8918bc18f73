import { load, measuredCore, otherCore, processorMs, start, stop, type Started } from './processes.ts';
const whole = JSON.stringify({ model: 'bench', messages: [{ role: 'user', content: 'a'.repeat(900) }] });
const upstream = await start('upstream.ts', [], otherCore);
const kinds = (process.argv[2] ?? 'pass,a,b,c,d,full').split(',');
const subjects: Record<string, Started> = { bare: await start('bare.ts', [String(upstream.port)], measuredCore) };
for (const k of kinds) subjects[k] = await start('variant.ts', [String(upstream.port), k], measuredCore);
const best: Record<string, number> = {};
for (let r = 0; r < 4; r++) for (const [n, s] of Object.entries(subjects)) {
  const b = processorMs(s); const res: any = await load({ port: s.port, key: s.key, path: '/v1/chat/completions', body: whole, connections: 32, seconds: 2 });
  if (res.failures) console.log(n, 'failures', res.failures);
  const us = (processorMs(s) - b) * 1000 / res.requests; if (r > 0) best[n] = Math.min(best[n] ?? 1e9, us);
}
for (const [n, us] of Object.entries(best)) console.log(n.padEnd(6), us.toFixed(1), (best.bare! / us).toFixed(2));
for (const s of [...Object.values(subjects), upstream]) stop(s);
