/** The projects of all accounts, or of the one that is asked for, and the filter by one of them. */
import { useTranslation } from 'react-i18next';
import { has, useMe } from '../../../api/session.ts';
import { projectChoices } from '../../../parts/project.ts';
import { useSearchState } from '../../../parts/search-state.ts';
import type { ProjectRow } from '../types.ts';
import { ChoiceFilter } from './filters.tsx';
import { useAnswer } from './load.tsx';

/** By name; empty where keys have none, and while they are being fetched. */
export function useProjects(): readonly string[] {
  const [search] = useSearchState();
  const known = has(useMe(), 'accounts');
  const requested = { accountId: search['accountId'] };
  const answer = useAnswer<{ rows: readonly ProjectRow[] }>('/admin/projects', requested, false, known);
  return (answer.data?.rows ?? []).map(({ project }) => project);
}

/** Nothing where there are no projects. */
export function ProjectFilter() {
  const { t } = useTranslation();
  const [search] = useSearchState();
  const projects = useProjects();
  const requested = search['project'];
  if (projects.length === 0 && requested === undefined) return null;
  const known =
    requested === undefined || requested === '-' || projects.includes(requested) ? projects : [...projects, requested];
  return (
    <ChoiceFilter
      name="project"
      label={t('shell.word.project')}
      data={projectChoices(known, t('shell.project.none'))}
    />
  );
}
