/** A moment in the viewer's zone; the exact one, with its distance from now, on hover. */
import { Text, Tooltip } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Moment } from '../api/types.ts';
import { distanceText, exactMomentText, momentText } from './format.ts';

interface TimeProps {
  readonly at: Moment | undefined | null;
  /** Shows how long ago or ahead, and the moment on hover. */
  readonly relative?: boolean;
  /** Shown where there is no moment. */
  readonly absent?: string;
}

export function Time({ at, relative = false, absent = '–' }: TimeProps) {
  const { i18n } = useTranslation();
  if (at === undefined || at === null)
    return (
      <Text span c="dimmed" inherit>
        {absent}
      </Text>
    );
  const moment = new Date(at);
  const now = new Date();
  const distance = distanceText(moment, now, i18n.language);
  const exact = exactMomentText(moment, i18n.language);
  return (
    <Tooltip label={relative ? exact : `${exact} · ${distance}`} multiline maw={320}>
      <time className="number" dateTime={at}>
        {relative ? distance : momentText(moment, now, i18n.language)}
      </time>
    </Tooltip>
  );
}
