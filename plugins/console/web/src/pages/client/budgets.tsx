/** The client's budgets, below the projects: what is spent of each, and setting, raising and ending their own. */
import { Button, Group, Stack, Text, Title } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useRight } from '../../api/rights.ts';
import BudgetList, { type Edited } from '../../parts/budgets/budget-list.tsx';
import type { BudgetPlace } from '../../parts/budgets/budget-place.ts';

const own: BudgetPlace = { base: '', authority: 'owner' };
const read: BudgetPlace = { base: '', authority: undefined };

export default function Budgets() {
  const { t } = useTranslation();
  const [edited, setEdited] = useState<Edited>();
  const sets = useRight('budgets');
  return (
    <Stack mt="xl">
      <Group justify="space-between">
        <Stack gap={0}>
          <Title order={2} fz="lg">
            {t('client.budgets.title')}
          </Title>
          <Text fz="sm" c="dimmed">
            {t('client.budgets.hint')}
          </Text>
        </Stack>
        {sets && (
          <Button variant="default" leftSection={<IconPlus size={16} />} onClick={() => setEdited('new')}>
            {t('client.budgets.create')}
          </Button>
        )}
      </Group>
      <BudgetList place={sets ? own : read} edited={edited} onEdit={setEdited} />
    </Stack>
  );
}
