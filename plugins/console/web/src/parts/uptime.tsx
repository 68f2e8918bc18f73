/** How much of its traffic a model answered, hour by hour, as a row of bars; failures have a colour. */
import { VisuallyHidden } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { PublicStatus } from '../api/types.ts';

interface UptimeStripProps {
  readonly of: PublicStatus['rows'][number] | undefined;
  readonly at: PublicStatus['at'];
  /** Only so many hours. */
  readonly last?: number;
}

/** `none`: no requests, or too few to judge by. */
function toneOf(share: number | null): 'none' | 'good' | 'near' | 'bad' {
  if (share === null) return 'none';
  return share >= 0.98 ? 'good' : share >= 0.8 ? 'near' : 'bad';
}

export function UptimeStrip({ of, at, last = at.length }: UptimeStripProps) {
  const { t } = useTranslation();
  const percent = useSharePercent();
  const when = useHourText();
  if (of === undefined) return <span>–</span>;
  return (
    <span className="uptime">
      {of.hours.slice(-last).map((share, index) => {
        const hour = at[at.length - Math.min(last, at.length) + index]!;
        return (
          <span
            key={hour}
            className="uptime-hour"
            data-tone={toneOf(share)}
            title={`${when(hour)}: ${share === null ? t('client.models.quiet') : percent(share)}`}
          />
        );
      })}
      <VisuallyHidden>{of.uptime === null ? t('client.models.quiet') : percent(of.uptime)}</VisuallyHidden>
    </span>
  );
}

export function useSharePercent(): (share: number) => string {
  const { i18n } = useTranslation();
  const format = new Intl.NumberFormat(i18n.language, { style: 'percent', maximumFractionDigits: 1 });
  return (share) => format.format(share);
}

function useHourText(): (at: string) => string {
  const { i18n } = useTranslation();
  const format = new Intl.DateTimeFormat(i18n.language, {
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  });
  return (at) => format.format(new Date(at));
}
