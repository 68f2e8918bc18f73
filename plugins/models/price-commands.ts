/** `prices check` and `prices quote`: problems of the prices, and the cost of a usage. */

import type { Command, CommandResult } from '../../core/contract/commands.ts';
import type { Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { invalid } from '../../core/json/request-body.ts';
import { accounts } from '../common/domain/accounts.ts';
import { formulaOf } from '../common/domain/formula.ts';
import { cost, formatUsd, parseRatio, type Ratio } from '../common/domain/money.ts';
import { plans } from '../common/domain/plans.ts';
import { type PriceContext, type Priced, priceFor, versionAt } from '../common/domain/prices.ts';
import { providers } from '../common/domain/upstreams.ts';
import { readCount, type Usage, type UsageClass, usageClasses } from '../common/domain/usage.ts';
import type { Values } from '../common/kit/commands/arguments.ts';
import { floorFaults, lowestRatioIn, withoutUnusedCosts } from './checks/floors.ts';
import { undersellingPlans, undersoldAccounts } from './checks/undersold.ts';
import type { ModelConfig, ModelsConfig } from './config.ts';
import { importCommand } from './import-command.ts';
import { withListCosts } from './list-cost.ts';
import { isoTime, reportPrices } from './price-report.ts';
import { vendorModelsCommand } from './vendor-models-command.ts';

const dayMs = 86_400_000;

export function priceCommands(host: Host, config: ModelsConfig): Command[] {
  return [
    {
      name: 'prices check',
      summary:
        'Lists holes, sales below cost, examples, prices that end soon, plans and accounts that pay less than the cost; exit code 1 on a hole or a loss',
      options: { '--days <n>': 'How far ahead an end is reported (30)' },
      run: async (values) => check(host, config, values),
    },
    {
      name: 'prices quote',
      summary: 'What a usage of a model costs, with its formula',
      arguments: ['<model>'],
      options: {
        ...Object.fromEntries(usageClasses.map((name) => [`${flagOf(name)} <n>`, `Count of the class ${name}`])),
        '--at <time>': 'Date or time (now)',
        '--service <name>': 'Service beyond the standard one, such as priority',
        '--media <words>': 'Size, quality and resolution, such as "high 1024x1024"',
        '--ratio <ratio>': "Multiplier; without it the lowest of the gateway's",
      },
      run: async (values) => quote(host, config, values),
    },
    importCommand(host, config),
    vendorModelsCommand(host, config),
  ];
}

/** `cache_write_5m` is `--cache-write-5m`, which the command line parses to `cacheWrite5m`. */
function flagOf(name: UsageClass): string {
  return `--${name.replaceAll('_', '-')}`;
}

function optionOf(name: UsageClass): string {
  return name.replace(/_(.)/g, (_match, letter: string) => letter.toUpperCase());
}

async function check(host: Host, config: ModelsConfig, values: Values): Promise<CommandResult> {
  const days = readCount(values['days'] ?? '30');
  if (days === undefined) throw invalid('--days is a whole number.', 'days');
  const at = host.clock.now();
  const report = reportPrices(withListCosts(config, host.get(providers)), host.find(plans), at, days * dayMs);
  const lowest = lowestRatioIn(host);
  const costed = withoutUnusedCosts(config, host.get(providers));
  const losses = floorFaults(costed, at, lowest).map(({ path, message }) => `${path[0]}: ${message}`);
  const undersold = [
    ...undersellingPlans(host, costed, at),
    ...undersoldAccounts(costed, (await host.find(accounts)?.list()) ?? [], lowest, at),
  ];
  const lines = [
    ...report.unpriced.map((model) => `hole: ${model} has no price and is not sold`),
    ...report.gaps.map(({ model, from }) => `hole: ${model} has no price from ${from} on`),
    ...losses.map((sentence) => `loss: ${sentence}`),
    ...undersold.map((sentence) => `below cost: ${sentence}`),
    ...report.unknown.map(
      ({ model, plan }) => `unknown: plan "${plan}" allows the model ${model}, which is not offered`,
    ),
    ...report.endings.map(
      ({ model, version, at: end, next }) => `ends: ${model} ${version} at ${end}, then ${next ?? 'not sold'}`,
    ),
    ...report.examples.map((model) => `example: ${model} has an example price; put your own before you sell it`),
    ...(report.toolless.length === 0
      ? []
      : [`free tools: no price of a vendor's own tools, not even "call: 0", have ${report.toolless.join(', ')}`]),
    ...(report.costless.length === 0 ? [] : [`no cost: the margin is unknown of ${report.costless.join(', ')}`]),
  ];
  const bad = report.unpriced.length + report.gaps.length + losses.length + report.unknown.length > 0;
  return {
    json: { ...report, losses, undersold, ok: !bad },
    text: lines.join('\n') || 'Every model has a price that holds, and none is sold below its cost.',
    exitCode: bad ? 1 : 0,
  };
}

function quote(host: Host, config: ModelsConfig, values: Values): CommandResult {
  const [id, model] = find(config, String(values['model']));
  const at = readTime(values['at'], host.clock.now());
  const usage = readUsage(values);
  const context = readContext(values);
  const ratio = values['ratio'] === undefined ? lowestRatioIn(host)(id, model) : readRatio(String(values['ratio']));
  const book = model.price ?? [];
  const priced = priceFor(book, at, usage, context);
  if (priced === undefined) throw new GatewayError('not_found', `${id} has no price at ${isoTime(at)}.`);
  const requested = context.services?.['tier'];
  if (requested !== undefined && versionAt(book, at)?.prices(requested) !== true)
    throw invalid(`${id} has no price for the service "${requested}" and is not sold with it.`, 'service');
  const amount = cost(charged(usage, priced), priced.price, ratio);
  const known = host.get(providers);
  const costed = withListCosts({ [id]: model }, known)[id]!;
  const ownBook = costed.targets.find((target) => known.find(target.provider) !== undefined)?.cost ?? costed.cost;
  const own = ownBook === undefined ? undefined : priceFor(ownBook, at, usage, context);
  const paid = own === undefined ? undefined : cost(charged(usage, own), own.price);
  const json = {
    model: id,
    at: isoTime(at),
    version: priced.version,
    tier: priced.tier,
    ratio: `${ratio.numerator}/${ratio.denominator}`,
    formula: formulaOf(charged(usage, priced), priced.price, ratio),
    usd: formatUsd(amount),
    nano_usd: amount,
    ...(paid === undefined ? {} : { own_cost: formatUsd(paid), margin: formatUsd(amount - paid) }),
  };
  const notes = [json.version, json.tier].filter((note) => note !== '').join(', ');
  const margin = paid === undefined ? '' : `\nown cost ${json.own_cost} USD, margin ${json.margin} USD`;
  return { json, text: `${json.formula} = ${json.usd} USD (${notes}, ${json.at})${margin}` };
}

/** As in a settlement: the request itself counts if it has a price. */
export function charged(usage: Usage, { price }: Priced): Usage {
  return price.request === undefined ? usage : { request: 1, ...usage };
}

function find(config: ModelsConfig, name: string): [string, ModelConfig] {
  const found = Object.entries(config).find(([id, { aliases }]) => id === name || aliases.includes(name));
  if (found === undefined) throw new GatewayError('not_found', `There is no model "${name}".`, { field: 'model' });
  return found;
}

function readUsage(values: Values): Usage {
  const usage: { [name: string]: number } = {};
  for (const name of usageClasses) {
    const text = values[optionOf(name)];
    if (text === undefined) continue;
    const count = readCount(text);
    if (count === undefined) throw invalid(`${flagOf(name)} is a whole number.`, optionOf(name));
    usage[name] = count;
  }
  return usage;
}

function readContext(values: Values): PriceContext {
  const service = values['service'];
  const media = values['media'];
  return {
    ...(service === undefined ? {} : { services: { tier: String(service).toLowerCase() } }),
    ...(media === undefined ? {} : { media: String(media).toLowerCase().split(/\s+/) }),
  };
}

function readTime(value: unknown, now: number): number {
  if (value === undefined) return now;
  const at = /^\d{4}-\d\d-\d\d/.test(String(value)) ? Date.parse(String(value)) : Number.NaN;
  if (Number.isFinite(at)) return at;
  throw invalid('--at is a date such as 2026-11-21, or a time such as 2026-11-21T16:00Z.', 'at');
}

function readRatio(text: string): Ratio {
  try {
    return parseRatio(text);
  } catch (error) {
    throw invalid(`${(error as Error).message}.`, 'ratio');
  }
}
