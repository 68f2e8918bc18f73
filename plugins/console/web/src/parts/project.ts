/** Projects in filters and charts: calls without one have a name of their own there. */
import type { ChosenSpan } from './span.tsx';

const noProject = '-';

/** A project as people read it. */
export const projectName = (project: string, none: string): string => (project === noProject ? none : project);

export const projectChoices = (projects: readonly string[], none: string) =>
  [...projects, noProject].map((value) => ({ value, label: projectName(value, none) }));

/** The span of one project alone: in questions, in those about the time before, and in addresses of other pages. */
export function spanOfProject(span: ChosenSpan, project: string | undefined): ChosenSpan {
  if (project === undefined) return span;
  const { query, previous, search } = span;
  return {
    ...span,
    query: { ...query, project },
    previous: { ...previous, project },
    search: { ...search, project },
  };
}
