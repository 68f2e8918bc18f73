/** The time zone of an account, in which the periods of its budgets and caps begin: chosen by its people, shown to others. */
import { Select, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { send } from '../../api/client.ts';
import { ErrorState } from '../states.tsx';
import { useWork } from '../use-work.ts';
import { viewerZone } from '../zone.tsx';
import { type BudgetPlace, useBudgetsChanged } from './budget-place.ts';

/** `zone`: null: it has none of its own. */
export function AccountZone({ place, zone }: { readonly place: BudgetPlace; readonly zone: string | null }) {
  const { t } = useTranslation();
  const changed = useBudgetsChanged(place);
  const { busy, problem, run } = useWork((error) => error);
  const name = zone ?? 'UTC';
  if (place.authority !== 'owner')
    return (
      <Text fz="sm" c="dimmed" p="md">
        {t('client.budgets.accountZone')}: {name}
      </Text>
    );
  const choose = async (chosen: string | null) => {
    await send('POST', `${place.base}/budgets/zone`, { zone: chosen });
    await changed(t('client.budgets.zoneSet'));
  };
  return (
    <>
      <Select
        m="md"
        maw={400}
        label={t('client.budgets.accountZone')}
        description={t('client.budgets.accountZoneHint')}
        data={[...new Set(['UTC', viewerZone, name])]}
        value={name}
        allowDeselect={false}
        disabled={busy}
        onChange={(chosen) => void run(() => choose(chosen))}
      />
      {problem !== undefined && <ErrorState error={problem} />}
    </>
  );
}
