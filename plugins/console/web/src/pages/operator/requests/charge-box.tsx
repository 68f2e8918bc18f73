/** What a request was charged, the sum that leads there, and giving it back. */
import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconReceiptRefund } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import { listKey } from '../../../parts/data-table.tsx';
import { exactMoneyText, localDecimals, localFormula, typedAmount } from '../../../parts/format.ts';
import { Money } from '../../../parts/money.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { Act, useActs } from '../parts/act.tsx';
import { Facts } from '../parts/facts.tsx';
import { answerKey } from '../parts/load.tsx';
import { shortId } from '../parts/names.tsx';
import { marginOfCharge } from '../sums/margin.ts';
import { isAmount, isNothing, minus, plainRatio } from '../sums/usd.ts';
import type { OperatorCharge, OperatorStory } from '../types.ts';
import { storyPath } from './story-path.ts';

export function ChargeBox({ story }: { readonly story: OperatorStory }) {
  const { t, i18n } = useTranslation();
  const acts = useActs();
  const { charge, request } = story;
  if (charge === null)
    return (
      <Text fz="sm" c="dimmed">
        {t('operator.traffic.requests.noCharge')}
      </Text>
    );
  const left = minus(charge.cost, charge.refunded);
  return (
    <Stack gap="sm">
      <ChargeFacts charge={charge} attempts={story.attempts} />
      <div>
        <Text fz="xs" c="dimmed" mb={4}>
          {t('operator.traffic.requests.formula')}
        </Text>
        <div className="formula" data-testid="formula">
          {localFormula(charge.formula, i18n.language)}
        </div>
        {charge.estimated && (
          <Text fz="xs" c="dimmed" mt={4}>
            {t('operator.traffic.requests.estimatedHint')}
          </Text>
        )}
      </div>
      {acts && <Refund id={request.id} left={left} />}
    </Stack>
  );
}

interface ChargeFactsProps {
  readonly charge: OperatorCharge;
  readonly attempts: OperatorStory['attempts'];
}

function ChargeFacts({ charge, attempts }: ChargeFactsProps) {
  const { t } = useTranslation();
  const { cost, ownCost, refunded, held, ratio, priceVersion, tier } = charge;
  return (
    <Facts
      of={[
        [t('operator.column.cost'), <Money key="cost" of={cost} exact />],
        [t('operator.column.ownCost'), <Money key="own" of={ownCost} exact />],
        ownCost !== null && [
          t('operator.column.margin'),
          <Money key="margin" of={marginOfCharge(charge, ownCost, attempts)} exact />,
        ],
        !isNothing(refunded) && [t('client.usage.refunded'), <Money key="refunded" of={refunded} exact />],
        [t('operator.traffic.requests.held'), <Money key="held" of={held} exact />],
        [t('shell.word.ratio'), localDecimals(plainRatio(ratio))],
        [t('operator.traffic.requests.priceVersion'), priceVersion],
        tier !== null && tier !== '' && [t('client.usage.tier'), tier],
      ]}
    />
  );
}

function Refund({ id, left }: { readonly id: string; readonly left: string }) {
  const { t, i18n } = useTranslation();
  const text = (usd: string) => exactMoneyText(usd, i18n.language);
  const asTyped = localDecimals(left, i18n.language);
  const [search, change] = useSearchState();
  const [opened, dialog] = useDisclosure(search['act'] === 'refund');
  const [typed, setTyped] = useState(asTyped);
  const amount = typedAmount(typed);
  const close = () => {
    dialog.close();
    if (search['act'] !== undefined) change({ act: undefined });
  };
  if (isNothing(left))
    return (
      <Text fz="sm" c="dimmed">
        {t('operator.traffic.requests.fullyRefunded')}
      </Text>
    );
  const open = () => {
    setTyped(asTyped);
    dialog.open();
  };
  return (
    <Group>
      <Button variant="default" size="xs" leftSection={<IconReceiptRefund size={15} />} onClick={open}>
        {t('operator.traffic.requests.refund')}
      </Button>
      <Act
        opened={opened}
        onClose={close}
        title={t('operator.traffic.requests.refundTitle', { name: shortId(id) })}
        text={t('operator.traffic.requests.refundText', { amount: text(left) })}
        action={t('operator.traffic.requests.refund')}
        missing={!isAmount(amount)}
        stale={[answerKey(storyPath(id)), listKey('/admin/requests')]}
        act={async (reason, once) => {
          await send('POST', `${storyPath(id)}/refund`, { amount, reason }, once);
          return t('operator.traffic.requests.refundDone', { amount: text(amount) });
        }}
      >
        <TextInput
          label={t('shell.word.amount')}
          inputMode="decimal"
          data-autofocus
          value={typed}
          error={isAmount(amount) ? undefined : t('operator.ask.amountWrong')}
          onChange={({ currentTarget }) => setTyped(currentTarget.value)}
        />
      </Act>
    </Group>
  );
}
