/** Alerts in the reader's language: titles, and values with their unit. */
import { useTranslation } from 'react-i18next';
import { countText, durationText, exactMoneyText, shareText } from '../../../parts/format.ts';
import en from '../../../texts/en/operator-alerts.ts';
import type { Alert } from '../types.ts';

export const alertsPath = '/admin/alerts';

type Known = keyof typeof en.kinds;
const isKnown = (kind: string): kind is Known => Object.hasOwn(en.kinds, kind);

export function useAlertTexts() {
  const { t, i18n } = useTranslation();
  return {
    /** Kinds that plugins add have a title of their own. */
    title: ({ kind, title }: Pick<Alert, 'kind' | 'title'>) =>
      isKnown(kind) ? t(`operator.alerts.kinds.${kind}`) : title,
    value(value: Alert['value'], unit: Alert['unit']): string {
      if (typeof value === 'string')
        return unit === 'usd'
          ? exactMoneyText(value, i18n.language)
          : t('operator.alerts.times', { value: value.slice(0, value.indexOf('.') + 2) });
      if (unit === 'share') return shareText(value, 1, i18n.language);
      if (unit === 'milliseconds') return durationText(value);
      return countText(value, i18n.language);
    },
  };
}
