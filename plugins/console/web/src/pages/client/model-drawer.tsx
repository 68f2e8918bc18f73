/** Everything about one model: all prices, official and yours, and what to do with it. */
import { Badge, Button, Code, Drawer, Group, Stack, Table, Text, Title } from '@mantine/core';
import { IconChartBar, IconMessage2, IconPencil } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { has, isOperator, useMe } from '../../api/session.ts';
import type { ModelRow, PriceLine } from '../../api/types.ts';
import { CopyButton } from '../../parts/copy-button.tsx';
import { FactList } from '../../parts/fact-list.tsx';
import { countText, localDecimals } from '../../parts/format.ts';
import { useClassName, useModalities } from '../../parts/known-words.ts';
import { useLimits } from '../../parts/limits.ts';
import { Money } from '../../parts/money.tsx';
import { ModelHealth } from './model-health.tsx';

interface ModelDrawerProps {
  readonly model: ModelRow | undefined;
  readonly onClose: () => void;
}

export function ModelDrawer({ model, onClose }: ModelDrawerProps) {
  return (
    <Drawer opened={model !== undefined} onClose={onClose} title={model?.displayName}>
      {model !== undefined && <Details model={model} />}
    </Drawer>
  );
}

function Details({ model }: { readonly model: ModelRow }) {
  const { t } = useTranslation();
  const me = useMe();
  return (
    <Stack gap="lg">
      <Group gap="xs">
        <Code fz="sm">{model.id}</Code>
        <CopyButton text={model.id} />
        <ModelHealth row={model} />
      </Group>
      <Facts model={model} />
      {model.prices === null ? (
        <Text fz="sm" c="dimmed">
          {t('client.models.notSold')}
        </Text>
      ) : (
        <Stack gap="xs">
          <Group gap="xs">
            <Title order={3} fz="sm">
              {t('client.models.prices')}
            </Title>
            <Badge variant="default" radius="sm" tt="none" fw={500}>
              {t('client.models.ratio', { ratio: localDecimals(model.prices.ratio) })}
            </Badge>
          </Group>
          <Lines of={model.prices.lines} />
          {model.prices.tiers.length > 0 && (
            <Title order={3} fz="sm" mt="sm">
              {t('client.models.tiers')}
            </Title>
          )}
          {model.prices.tiers.map(({ name, lines }) => (
            <div key={name}>
              <Code>{name}</Code>
              <Lines of={lines} />
            </div>
          ))}
        </Stack>
      )}
      <Group gap="xs">
        {model.kind !== 'realtime' && (
          <Button
            size="xs"
            leftSection={<IconMessage2 size={15} />}
            renderRoot={(props) => <Link {...props} to="/playground" search={{ model: model.id }} />}
          >
            {t('client.models.tryIt')}
          </Button>
        )}
        <Button
          size="xs"
          variant="default"
          leftSection={<IconChartBar size={15} />}
          renderRoot={(props) => <Link {...props} to="/usage" search={{ model: model.id }} />}
        >
          {t('client.models.rows')}
        </Button>
        {isOperator(me) && has(me, 'config') && has(me, 'prices') && (
          <Button
            size="xs"
            variant="default"
            leftSection={<IconPencil size={15} />}
            renderRoot={(props) => <Link {...props} to="/admin/prices" search={{ edit: model.id }} />}
          >
            {t('shell.edit')}
          </Button>
        )}
      </Group>
    </Stack>
  );
}

function Facts({ model }: { readonly model: ModelRow }) {
  const { t, i18n } = useTranslation();
  const modalitiesText = useModalities();
  const limitsOf = useLimits();
  const tokens = (count: number | null) => (count === null ? '–' : countText(count, i18n.language));
  const facts = [
    [t('client.models.takes'), modalitiesText(model.modalities)],
    [t('client.models.context'), tokens(model.contextTokens)],
    [t('client.models.output'), tokens(model.maxOutputTokens)],
    ...limitsOf(model.limits),
  ] as const;
  return <FactList facts={facts} labelWidth={180} />;
}

function Lines({ of }: { readonly of: readonly PriceLine[] }) {
  const { t } = useTranslation();
  const nameOf = useClassName();
  return (
    <Table className="prices" verticalSpacing={5}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>{t('client.models.class')}</Table.Th>
          <Table.Th ta="right">{t('client.models.officialPrice')}</Table.Th>
          <Table.Th ta="right">{t('client.models.yours')}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {of.map((line) => (
          <Table.Tr key={line.class}>
            <Table.Td>
              {nameOf(line.class)}{' '}
              <Text span fz="xs" c="dimmed">
                {t(`shell.per.${line.per}`)}
              </Text>
            </Table.Td>
            <Table.Td ta="right" c="dimmed">
              <Money of={line.official} />
            </Table.Td>
            <Table.Td ta="right" fw={600}>
              <Money of={line.yours} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
