/** Links to the pages that this person may open and this gateway has, in groups. */
import { NavLink, Text } from '@mantine/core';
import { IconUserCircle } from '@tabler/icons-react';
import { Link, useLocation } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { seesOperatorPages, useMe } from '../api/session.ts';
import type { Me } from '../api/types.ts';
import { clientPages } from '../pages/client/index.ts';
import { operatorPages } from '../pages/operator/index.ts';
import { type PageEntry, pageGroups } from '../pages/page-entry.ts';
import { pluginPages } from '../pages/plugin-page/pages.ts';

export function Sidebar() {
  const { t } = useTranslation();
  const me = useMe();
  const mine = me.account === null ? [] : [...shown(clientPages, me), ...pluginPages(me, 'own')];
  if (!seesOperatorPages(me)) return <Lines pages={mine} />;
  const operators = [...shown(operatorPages, me), ...pluginPages(me, 'operators')];
  return (
    <>
      {pageGroups.map((group) => (
        <Group
          key={group}
          title={t(`shell.groups.${group}`)}
          pages={operators.filter((one) => one.link?.group === group)}
        />
      ))}
      {mine.length > 0 && <Mine pages={mine} />}
    </>
  );
}

/** Pages with a sidebar link that this gateway has the features for. */
export const shown = (pages: readonly PageEntry[], me: Me): readonly PageEntry[] =>
  pages.filter(({ link, needs = [] }) => link !== undefined && needs.every((need) => me.features[need]));

interface LinesProps {
  readonly pages: readonly PageEntry[];
}

function Group({ title, pages }: LinesProps & { readonly title: string }) {
  if (pages.length === 0) return null;
  return (
    <>
      <Text fz="xs" fw={550} c="dimmed" px={10} pt="sm" pb={4} className="sidebar-title">
        {title}
      </Text>
      <Lines pages={pages} />
    </>
  );
}

/** Operators are clients too, on the side: their own pages are folded until they open one. */
function Mine({ pages }: LinesProps) {
  const { t } = useTranslation();
  const { pathname } = useLocation();
  const [wanted, setWanted] = useState<boolean>();
  const isThere = pages.some(({ path }) => isBelow(path, pathname));
  return (
    <NavLink
      mt="sm"
      className="sidebar-link"
      label={t('shell.mine')}
      leftSection={<IconUserCircle size={16} stroke={1.7} aria-hidden />}
      opened={wanted ?? isThere}
      onChange={setWanted}
      childrenOffset={0}
    >
      <Lines pages={pages} />
    </NavLink>
  );
}

const isBelow = (path: string, pathname: string) =>
  path === '/' ? pathname === '/' : pathname === path || pathname.startsWith(`${path}/`);

function Lines({ pages }: LinesProps) {
  const { pathname } = useLocation();
  return pages.map(({ path, link }) => {
    const Picture = link!.icon;
    const active = isBelow(path, pathname);
    return (
      <NavLink
        key={path}
        renderRoot={(props) => <Link {...props} to={path} preload="intent" />}
        aria-current={active ? 'page' : undefined}
        active={active}
        label={link!.text()}
        leftSection={<Picture size={16} stroke={1.7} aria-hidden />}
        className="sidebar-link"
      />
    );
  });
}
