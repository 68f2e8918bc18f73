/** Whether people of the company's domains sign in by its provider alone. */
import { Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Confirm } from '../../../parts/confirm.tsx';
import { Panel } from '../../../parts/page.tsx';
import { ErrorState } from '../../../parts/states.tsx';
import { useWork } from '../../../parts/use-work.ts';
import type { CompanyChange as Change } from './keys.ts';

interface RequiredProps {
  readonly required: boolean;
  readonly change: Change;
}

export function Required({ required, change }: RequiredProps) {
  const { t } = useTranslation();
  const [asking, setAsking] = useState(false);
  const { busy, problem, run } = useWork((error) => error);
  const set = (wanted: boolean) => change('POST', '/required', { required: wanted });
  return (
    <Panel title={t('client.company.only')}>
      <Stack>
        <Text fz="sm">{t(required ? 'client.company.onlyOn' : 'client.company.onlyHint')}</Text>
        {problem !== undefined && <ErrorState error={problem} />}
        <Group justify="flex-end">
          {required ? (
            <Button variant="default" loading={busy} onClick={() => void run(() => set(false))}>
              {t('client.company.release')}
            </Button>
          ) : (
            <Button variant="default" onClick={() => setAsking(true)}>
              {t('client.company.require')}
            </Button>
          )}
        </Group>
      </Stack>
      <Confirm
        opened={asking}
        title={t('client.company.requireTitle')}
        action={t('client.company.require')}
        danger
        onConfirm={() => set(true)}
        onClose={() => setAsking(false)}
      >
        {t('client.company.requireWords')}
      </Confirm>
    </Panel>
  );
}
