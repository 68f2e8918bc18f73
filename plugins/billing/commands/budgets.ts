/** The operator's commands on budgets of single accounts: what is in force and spent, setting one, ending one. */
import type { Command, CommandResult } from '../../../core/contract/commands.ts';
import type { Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { formatUsd } from '../../common/domain/money.ts';
import {
  type BudgetAdmin,
  type BudgetRule,
  type BudgetTerms,
  type BudgetView,
  budgetAdmin,
  budgetKinds,
  budgetPeriods,
  warnsOf,
} from '../../common/domain/organizations/budgets.ts';
import { projectAdmin } from '../../common/domain/organizations/projects.ts';
import { amountOf, columns, textOf, timeText, type Values } from '../../common/kit/commands/arguments.ts';
import { findAccount } from './arguments.ts';

const ofAccount = { '--account <name>': 'Name or id of the account' };

export function budgetCommands(host: Host): Command[] {
  const admin = () => host.get(budgetAdmin);
  return [
    {
      name: 'budgets list',
      summary: 'Lists the budgets in force for an account, those of the settings too, and what is spent of them',
      options: ofAccount,
      run: async (values) => list(admin(), (await findAccount(host, values['account'])).id),
    },
    {
      name: 'budgets set',
      summary: 'Sets what calls of an account may spend in a period; the same calls and periods again: another amount',
      arguments: ['<usd>'],
      options: {
        ...ofAccount,
        '--of <kind>': `Which calls: ${budgetKinds.join(', ')}`,
        '--every <period>': `The period: ${budgetPeriods.join(', ')}`,
        '--for <name>':
          'The one project (by name or id), person or key (by id); without it each person or project has one',
        '--models <list>': 'Of models: their ids, separated by commas, with * for any part',
        '--tag <tag>': 'Of tag: the tag with its value, such as env=dev',
        '--by <who>': 'Of models: account (if not said otherwise) or person',
        '--zone <name>': "The time zone in which periods begin, such as Europe/Berlin (the account's)",
        '--first <day>': 'The first day of some period, such as 2026-04-06',
        '--warn <shares>': 'At which shares a notice is sent, such as 0.5,0.8',
        '--instead <model>': 'The model that takes calls which do not fit in it',
        '--soft': 'Calls go on when it is passed: only notices are sent',
      },
      run: (values) => set(host, admin(), values),
    },
    {
      name: 'budgets add',
      summary: 'Lets more be spent of a budget, in its present period alone',
      arguments: ['<scope>', '<usd>'],
      options: { ...ofAccount, '--reason <text>': 'Why, for the people in charge' },
      run: (values) => add(host, admin(), values),
    },
    {
      name: 'accounts zone',
      summary:
        'Sets the time zone in which periods of budgets and caps, and months of statements and credit lines, of an account begin',
      arguments: ['<zone>'],
      options: ofAccount,
      run: (values) => setZone(host, admin(), values),
    },
    {
      name: 'budgets end',
      summary: 'Ends a budget that "budgets set" has made; calls that wait go on',
      arguments: ['<id>'],
      options: ofAccount,
      run: async (values) => {
        const { id, name } = await findAccount(host, values['account']);
        const ended = await admin().end(id, 'operator', textOf(values, 'id') ?? '');
        return { json: ruleJson(ended), text: `The budget ${textOfRule(ended)} of ${name} has ended.` };
      },
    },
  ];
}

async function list(admin: BudgetAdmin, accountId: string): Promise<CommandResult> {
  const views = await admin.list(accountId);
  const json = views.map(viewJson);
  const lines = views.flatMap((view) => {
    const { states, id, authority } = view;
    const head = [textOfRule(view), authority ?? 'settings', id ?? ''];
    if (states.length === 0) return [[head[0]!, '', '', '', '', ...head.slice(1), '']];
    return states.map(({ scope, subject = '', spent, ceiling, until }, at) => [
      at === 0 ? head[0]! : '',
      ...[subject, formatUsd(spent), formatUsd(ceiling), timeText(until, 'never')],
      ...[...head.slice(1), scope],
    ]);
  });
  const heading = ['BUDGET', 'OF', 'SPENT', 'CEILING', 'FREES', 'SET BY', 'ID', 'SCOPE'];
  return { json, text: lines.length === 0 ? 'No budget is in force.' : columns(heading, lines) };
}

async function set(host: Host, admin: BudgetAdmin, values: Values): Promise<CommandResult> {
  const { id, name } = await findAccount(host, values['account']);
  const of = choiceOf(values, 'of', budgetKinds);
  const wanted = textOf(values, 'for');
  const terms: BudgetTerms = {
    of,
    subject: of === 'project' && wanted !== undefined ? await projectOf(host, id, wanted) : wanted,
    models: textOf(values, 'models')
      ?.split(',')
      .map((model) => model.trim()),
    tag: textOf(values, 'tag'),
    by: values['by'] === undefined ? undefined : choiceOf(values, 'by', ['account', 'person']),
    amount: amountOf(textOf(values, 'usd') ?? '', 'usd'),
    every: choiceOf(values, 'every', budgetPeriods),
    zone: textOf(values, 'zone'),
    first: textOf(values, 'first'),
    warn: textOf(values, 'warn')?.split(',').map(Number),
    instead: textOf(values, 'instead'),
    hard: values['soft'] === true ? false : undefined,
  };
  const view = await admin.set(id, 'operator', terms);
  const ceiling = `${formatUsd(view.amount)} USD${view.every === 'ever' ? '' : ` a ${view.every}`}`;
  return { json: viewJson(view), text: `The budget ${textOfRule(view)} of ${name} is ${ceiling} (${view.id}).` };
}

async function add(host: Host, admin: BudgetAdmin, values: Values): Promise<CommandResult> {
  const { id, name } = await findAccount(host, values['account']);
  const amount = amountOf(textOf(values, 'usd') ?? '', 'usd');
  const addition = { scope: textOf(values, 'scope') ?? '', amount, reason: textOf(values, 'reason') ?? '' };
  const view = await admin.add(id, 'operator', addition);
  const [state] = view.states;
  const ceiling = `${formatUsd(state!.ceiling)} USD until ${timeText(state!.until, 'it ends')}`;
  return { json: viewJson(view), text: `The budget ${textOfRule(view)} of ${name} is ${ceiling}.` };
}

async function setZone(host: Host, admin: BudgetAdmin, values: Values): Promise<CommandResult> {
  const { id, name } = await findAccount(host, values['account']);
  const zone = textOf(values, 'zone') ?? '';
  await admin.setZone(id, zone);
  return { json: { account: id, zone }, text: `Periods of ${name} begin in ${zone} from now on.` };
}

function choiceOf<const Choice extends string>(values: Values, name: string, choices: readonly Choice[]): Choice {
  const found = choices.find((choice) => choice === textOf(values, name));
  if (found === undefined) throw invalid(`--${name} is one of ${choices.join(', ')}.`, name);
  return found;
}

async function projectOf(host: Host, accountId: string, wanted: string): Promise<string> {
  const projects = host.find(projectAdmin);
  const found = (await projects?.named(accountId, wanted)) ?? (await projects?.find(accountId, wanted));
  if (found === undefined) throw new GatewayError('not_found', 'There is no such project.', { field: 'for' });
  return found.id;
}

function textOfRule({ of, subject, name, models, tag, by, every }: BudgetRule): string {
  const one = subject ?? name;
  const who = by === 'person' ? ' for each person' : '';
  const what = models?.join(',') ?? tag ?? (one === undefined && of !== 'account' ? `each ${of}` : of);
  return `of ${what}${one === undefined ? '' : ` ${one}`}${who} (${every})`;
}

function ruleJson(rule: BudgetRule) {
  const { id, authority, of, subject, name, models, tag, by, amount, every, zone, first } = rule;
  return {
    id: id ?? null,
    set_by: authority ?? 'settings',
    of,
    subject: subject ?? name ?? null,
    models: models ?? null,
    tag: tag ?? null,
    by: by ?? null,
    amount: formatUsd(amount),
    every,
    zone: zone ?? null,
    first: first ?? null,
    hard: rule.hard ?? true,
    instead: rule.instead ?? null,
    warn: warnsOf(rule),
  };
}

function viewJson(view: BudgetView) {
  const states = view.states.map(({ scope, subject, ceiling, spent, from, until }) => ({
    scope,
    subject: subject ?? null,
    ceiling: formatUsd(ceiling),
    spent: formatUsd(spent),
    from: new Date(from).toISOString(),
    until: until === undefined ? null : new Date(until).toISOString(),
  }));
  return { ...ruleJson(view), states };
}
