/** The message after files were applied: done, or which sections wait for a restart. Pure. */
import type { TFunction } from 'i18next';
import type { ConfigCheck } from '../sale-types.ts';

/** Sections that wait for a restart. */
export const restartNames = ({ changes }: ConfigCheck): string[] =>
  changes.filter(({ restart }) => restart).map(({ section }) => section);

export function doneText(check: ConfigCheck, done: string, t: TFunction): string {
  const sections = restartNames(check);
  return sections.length === 0 ? done : t('operator.config.savedRestart', { sections: sections.join(', ') });
}
