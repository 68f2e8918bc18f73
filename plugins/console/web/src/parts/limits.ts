/** Limits of a model of images, videos or sound as a list of facts; unknown ones are left out. */
import { useTranslation } from 'react-i18next';
import type { ModelRow } from '../api/types.ts';
import { countText } from './format.ts';

export function useLimits(): (limits: ModelRow['limits']) => (readonly [label: string, value: string])[] {
  const { t, i18n } = useTranslation();
  const count = (value: number | undefined) => value && countText(value, i18n.language);
  return ({ prompt, images, references, seconds, size, resolutions, voices, formats }) => {
    const facts = [
      [t('shell.limits.prompt'), count(prompt)],
      [t('shell.limits.images'), count(images)],
      [t('shell.limits.references'), count(references)],
      [t('shell.limits.seconds'), count(seconds)],
      [t('shell.limits.size'), size?.replace('x', ' × ')],
      [t('shell.limits.resolutions'), resolutions?.join(', ')],
      [t('shell.limits.voices'), voices?.join(', ')],
      [t('shell.limits.formats'), formats?.join(', ')],
    ] as const;
    return facts.flatMap(([label, value]) => (value === undefined || value === 0 ? [] : [[label, value] as const]));
  };
}
