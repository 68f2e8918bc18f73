/** How a figure has changed against the time before. */
import { IconArrowDownRight, IconArrowUpRight } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { changeOf } from './named-span.ts';

interface ChangeProps {
  readonly now: number | null | undefined;
  readonly before: number | null | undefined;
}

/** How much more or less than in the time before. Neither is good or bad by itself, so it has no colour. */
export default function Change({ now, before }: ChangeProps) {
  const { t, i18n } = useTranslation();
  const share = changeOf(now, before);
  if (share === undefined) return null;
  const Arrow = share < 0 ? IconArrowDownRight : IconArrowUpRight;
  const percent = new Intl.NumberFormat(i18n.language, {
    style: 'percent',
    maximumFractionDigits: Math.abs(share) < 0.1 ? 1 : 0,
    signDisplay: 'exceptZero',
  }).format(Math.min(share, 99.99));
  return (
    <span className="change number" title={t('shell.activity.before')}>
      {Math.abs(share) >= 0.0005 && <Arrow size={12} aria-hidden />}
      {percent}
    </span>
  );
}
