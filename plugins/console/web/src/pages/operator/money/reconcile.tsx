/** Reconciliation: the gateway checks the whole ledger, and the findings are shown. */
import { Alert, Button, List, Skeleton, Text } from '@mantine/core';
import { IconAlertTriangle, IconCheck, IconScale } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import { countText } from '../../../parts/format.ts';
import { Panel } from '../../../parts/page.tsx';
import { ErrorState } from '../../../parts/states.tsx';
import { Time } from '../../../parts/time.tsx';
import { useActs } from '../parts/act.tsx';
import type { Reconciliation } from '../sale-types.ts';

export function Reconcile() {
  const { t } = useTranslation();
  const acts = useActs();
  const run = useMutation({ mutationFn: () => send<Reconciliation>('POST', '/admin/money/reconcile', {}) });
  if (!acts) return null;
  return (
    <Panel
      title={t('operator.sales.money.reconcile')}
      hint={t('operator.sales.money.reconcileHint')}
      actions={
        <Button
          size="xs"
          variant="default"
          leftSection={<IconScale size={15} />}
          loading={run.isPending}
          onClick={() => run.mutate()}
        >
          {t('operator.sales.money.reconcile')}
        </Button>
      }
    >
      {run.isPending && (
        <div role="status">
          <Text fz="sm" mb="xs">
            {t('operator.sales.money.reconciling')}
          </Text>
          <Skeleton h={6} radius="sm" />
        </div>
      )}
      {run.isError && <ErrorState error={run.error} onRetry={() => run.mutate()} />}
      {run.isSuccess && <Found result={run.data} />}
    </Panel>
  );
}

function Found({ result: { ok, findings, rows, checkedAt } }: { readonly result: Reconciliation }) {
  const { t, i18n } = useTranslation();
  return (
    <Alert
      role="status"
      color={ok ? 'teal' : 'red'}
      variant="light"
      icon={ok ? <IconCheck size={18} /> : <IconAlertTriangle size={18} />}
      title={ok ? t('operator.sales.money.ok') : t('operator.sales.money.wrong', { count: findings.length })}
    >
      <Text fz="sm">
        {t('operator.sales.money.checkedRows', { count: rows, number: countText(rows, i18n.language) })}{' '}
        <Time at={checkedAt} />
      </Text>
      <List fz="sm" mt={findings.length > 0 ? 'xs' : 0}>
        {findings.map((finding) => (
          <List.Item key={finding}>{finding}</List.Item>
        ))}
      </List>
    </Alert>
  );
}
