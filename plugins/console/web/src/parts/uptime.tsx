/** How much of its traffic a model answered, hour by hour, as a row of bars; failures have a colour. */
import { VisuallyHidden } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { PublicStatus } from '../api/types.ts';

interface UptimeStripProps {
  readonly of: PublicStatus['rows'][number] | undefined;
  readonly at: PublicStatus['at'];
  /** Only the latest day. */
  readonly ofDay?: boolean;
}

/** `none`: no requests, or too few to judge by. */
function toneOf(share: number | null): 'none' | 'good' | 'near' | 'bad' {
  if (share === null) return 'none';
  return share >= 0.98 ? 'good' : share >= 0.8 ? 'near' : 'bad';
}

export function UptimeStrip({ of, at, ofDay = false }: UptimeStripProps) {
  const { t } = useTranslation();
  const percent = useSharePercent();
  const when = useHourText();
  if (of === undefined) return <span>–</span>;
  const from = ofDay ? Math.max(0, at.length - 24) : 0;
  const whole = ofDay ? of.lastDay : of.uptime;
  return (
    <span className="uptime">
      {of.hours.slice(from).map((share, index) => {
        const hour = at[from + index]!;
        return (
          <span
            key={hour}
            className="uptime-hour"
            data-tone={toneOf(share)}
            title={`${when(hour)}: ${share === null ? t('client.models.quiet') : percent(share)}`}
          />
        );
      })}
      <VisuallyHidden>{whole === null ? t('client.models.quiet') : percent(whole)}</VisuallyHidden>
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
