/** Operator commands for projects. */

import type { Command, CommandResult } from '../../../core/contract/commands.ts';
import { invalid } from '../../../core/json/request-body.ts';
import type { Accounts } from '../../common/domain/accounts.ts';
import type { MemberAdmin } from '../../common/domain/organizations/members.ts';
import type { ProjectAdmin, ProjectTerms, ProjectView } from '../../common/domain/organizations/projects.ts';
import { accountOf, columns, textOf, timeText, type Values } from '../../common/kit/commands/arguments.ts';
import { noProjectThere } from './admin.ts';

const ofAccount = { '--account <name>': 'account of the project, by name or id' };
const termsOptions = {
  '--models <list>': 'models its keys may call, separated by commas; "all": every one that the key may',
  '--regions <list>': 'regions in which calls of its keys may be processed, separated by commas; "all": anywhere',
  '--owner <person>': 'id of the member in charge',
};

export function projectCommands(
  accounts: Accounts,
  projects: ProjectAdmin,
  members: Pick<MemberAdmin, 'roleOf'>,
): Command[] {
  const checkOwner = async (accountId: string, { owner }: Partial<ProjectTerms>) => {
    if (owner !== undefined && (await members.roleOf(accountId, owner)) === undefined)
      throw invalid('The owner of a project is a member of its account, named by the id of the person.', 'owner');
  };
  const named = async (values: Values) => {
    const { id: accountId } = await accountOf(accounts, values);
    const wanted = textOf(values, 'project') ?? '';
    const found = (await projects.named(accountId, wanted)) ?? (await projects.find(accountId, wanted));
    if (found === undefined) throw noProjectThere();
    return found;
  };
  const archiving = (name: string, summary: string, archived: boolean): Command => ({
    name,
    summary,
    arguments: ['<project>'],
    options: ofAccount,
    run: async (values) => {
      const { accountId, id } = await named(values);
      return shownAs(await projects.setArchived(accountId, id, archived), archived ? 'is archived' : 'is in use');
    },
  });
  return [
    listing(accounts, projects),
    {
      name: 'projects create',
      summary: 'Creates a project.',
      arguments: ['<name>'],
      options: { ...ofAccount, ...termsOptions },
      run: async (values) => {
        const { id } = await accountOf(accounts, values);
        const name = textOf(values, 'name') ?? '';
        const terms = changedTerms(values);
        await checkOwner(id, terms);
        return shownAs(await projects.create(id, { name, ...terms }), 'is made');
      },
    },
    {
      name: 'projects change',
      summary: 'Changes a project; what is not named stays.',
      arguments: ['<project>'],
      options: { ...ofAccount, '--name <name>': 'another name, which its keys get too', ...termsOptions },
      run: async (values) => {
        const before = await named(values);
        const { accountId, id, name, owner, models, regions } = before;
        const wanted = changedTerms(values);
        // One who has left the account stays until another is named.
        if (wanted.owner !== owner) await checkOwner(accountId, wanted);
        const terms = { name: textOf(values, 'name') ?? name, owner, models, regions, ...wanted };
        return shownAs(await projects.change(accountId, id, terms), 'is changed');
      },
    },
    archiving('projects archive', 'Refuses the keys of a project from now on.', true),
    archiving('projects restore', 'Lets the keys of an archived project in again.', false),
  ];
}

function listing(accounts: Accounts, projects: ProjectAdmin): Command {
  return { name: 'projects list', summary: 'Lists the projects of an account.', options: ofAccount, run };

  async function run(values: Values): Promise<CommandResult> {
    const { id } = await accountOf(accounts, values);
    const rows: ProjectView[] = [];
    for (let after: string | undefined; ; ) {
      const page = await projects.list(id, {}, { limit: 500, after });
      rows.push(...page.rows);
      after = page.next;
      if (after === undefined) break;
    }
    const lines = rows.map((row) => [
      row.name,
      String(row.keys),
      row.models?.join(',') ?? 'all',
      row.owner ?? '',
      row.archivedAt === undefined ? 'in use' : `archived ${timeText(row.archivedAt, '').slice(0, 10)}`,
      row.id,
    ]);
    return { json: rows, text: columns(['NAME', 'KEYS', 'MODELS', 'OWNER', 'STATE', 'ID'], lines) };
  }
}

/** The terms that the command names. */
function changedTerms(values: Values): Partial<ProjectTerms> {
  const models = textOf(values, 'models');
  const owner = textOf(values, 'owner');
  const regions = textOf(values, 'regions');
  return {
    ...(models === undefined ? {} : { models: listed(models) }),
    ...(regions === undefined ? {} : { regions: listed(regions) }),
    ...(owner === undefined ? {} : { owner }),
  };
}

const listed = (written: string) => (written === 'all' ? undefined : written.split(',').map((entry) => entry.trim()));

const shownAs = (project: ProjectView, state: string): CommandResult => ({
  json: project,
  text: `Project "${project.name}" (${project.id}) ${state}.`,
});
