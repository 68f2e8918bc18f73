/** Links to the pages that this person may open and this gateway has. */
import { NavLink, Text } from '@mantine/core';
import { Link, useLocation } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { seesOperatorPages, useMe } from '../api/session.ts';
import type { Me } from '../api/types.ts';
import { clientPages } from '../pages/client/index.ts';
import { operatorPages } from '../pages/operator/index.ts';
import type { PageEntry } from '../pages/page-entry.ts';

export function Sidebar() {
  const { t } = useTranslation();
  const me = useMe();
  const mine = me.account === null ? [] : shown(clientPages, me);
  const operators = seesOperatorPages(me) ? shown(operatorPages, me) : [];
  return (
    <>
      <Part title={operators.length > 0 && mine.length > 0 ? t('shell.mine') : undefined} pages={mine} />
      <Part title={operators.length > 0 ? t('shell.operator') : undefined} pages={operators} />
    </>
  );
}

/** Pages with a sidebar link that this gateway has the features for. */
export const shown = (pages: readonly PageEntry[], me: Me): readonly PageEntry[] =>
  pages.filter(({ link, needs = [] }) => link !== undefined && needs.every((need) => me.features[need]));

function Part({ title, pages }: { readonly title: string | undefined; readonly pages: readonly PageEntry[] }) {
  const { pathname } = useLocation();
  return (
    <>
      {title !== undefined && pages.length > 0 && (
        <Text fz={11} fw={600} c="dimmed" px="sm" pt="md" pb={4} className="sidebar-title">
          {title}
        </Text>
      )}
      {pages.map(({ path, link }) => {
        const Picture = link!.icon;
        const active = path === '/' ? pathname === '/' : pathname === path || pathname.startsWith(`${path}/`);
        return (
          <NavLink
            key={path}
            renderRoot={(props) => <Link {...props} to={path} preload="intent" />}
            aria-current={active ? 'page' : undefined}
            active={active}
            label={link!.text()}
            leftSection={<Picture size={17} stroke={1.7} aria-hidden />}
            className="sidebar-link"
          />
        );
      })}
    </>
  );
}
